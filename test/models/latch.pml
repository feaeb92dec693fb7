/*
 * latch.pml
 *	  What a sample of the latch word is worth (ax_latch.h, ax_guard.h).
 *
 * Two writers and a reader over x and y, which belong together.  A writer
 * takes the word for sure (LOCKED and CLOSED at once), adjustably (LOCKED now,
 * CLOSED before its first store, and perhaps never) or by upgrading a sample;
 * it changes something or nothing, and the version grows in the first case
 * only.  A sample is taken from any word without CLOSED, LOCKED or not: that
 * is the opportunistic one.
 *
 * Properties (assertions):
 * - exclusion;
 * - a reader whose sample is valid at the end saw x and y of one moment;
 * - an upgrade succeeds only if nothing changed since its sample.
 *
 * Cures that can be taken out, each must make the check fail:
 *	 UPGRADE_LOCKED		upgrade from a word with LOCKED set (the paper's bug)
 *	 NO_CLOSE			an adjustable holder stores without CLOSED
 *	 LATE_CLOSE			.. or sets it behind its first store
 *	 NO_VERSION			a change leaves the version alone
 *	 VALID_OPEN			validation looks at the version only, not at CLOSED
 */
#define TURNS 2

bool locked;
bool closed;
byte version;

byte x, y;
byte holders;
byte changes;					/* how often anything was changed, ever */

inline finish()
{
	/* one fetch_add */
	atomic {
		holders--;
		locked = false;
		closed = false;
#ifndef NO_VERSION
		if
		:: changed -> version++
		:: else
		fi;
#endif
		changed = false
	}
}

inline store_both()
{
#ifdef LATE_CLOSE
	x++;
	closed = true;
#else
#ifndef NO_CLOSE
	closed = true;
#endif
	x++;
#endif
	atomic { y++; changes++; changed = true }
}

proctype writer()
{
	byte turn, v, seen, rx;
	bool changed;

	do
	:: turn == TURNS -> break
	:: else ->
		turn++;
		if
		:: /* for sure */
			atomic { !locked -> locked = true; closed = true; holders++; assert(holders == 1) }
			if
			:: store_both()
			:: true
			fi;
			finish()
		:: /* adjustably */
			atomic { !locked -> locked = true; holders++; assert(holders == 1) }
			if
			:: store_both()
			:: true
			fi;
			finish()
		:: /* by a sample */
			atomic { !closed -> v = version; seen = changes }
			rx = x;
			atomic {
				if
#ifdef UPGRADE_LOCKED
				:: version == v && !closed ->
#else
				:: version == v && !locked ->
#endif
					locked = true; closed = true; holders++;
					assert(holders == 1);
					assert(changes == seen && x == rx && y == rx)
				:: else -> v = 0; seen = 0; rx = 0; goto next
				fi;
				v = 0; seen = 0; rx = 0
			}
			store_both();
			finish()
		fi;
next:	skip
	od
}

proctype reader()
{
	byte turn, v, rx, ry;

	do
	:: turn == TURNS -> break
	:: else ->
		turn++;
		atomic { !closed -> v = version }
		rx = x;
		ry = y;
		atomic {
			if
#ifdef VALID_OPEN
			:: version == v -> assert(rx == ry)
#else
			:: version == v && !closed -> assert(rx == ry)
#endif
			:: else
			fi;
			v = 0; rx = 0; ry = 0
		}
	od
}

init {
	atomic {
		run writer();
		run writer();
		run reader()
	}
}

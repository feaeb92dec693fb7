/*
 * epoch.pml
 *	  When an unlinked object may be reused (ax_epoch.c).
 *
 * A reader loads the global epoch, announces it in its slot by an exchange
 * (store and full fence in one), looks again and says the newer one if it
 * moved, loads the one shared pointer, uses what it found, and leaves.  A
 * writer, inside an epoch too, unlinks the object, stamps it with the global
 * epoch read afterwards, and leaves.  The epoch moves from e to e + 1 when
 * every slot shows e or nothing; one process at a time looks round.  Whoever
 * finds epoch >= stamp + 2 takes the object for reuse.
 *
 * With BARRIER a reader announces by a plain store, and who wants to move the epoch
 * has every processor drain its store buffer, one after the other, before it
 * looks round (ax_barrier.c).  A writer exchanges as ever.
 *
 * Property: no object is reused while a reader has it in hand (assertion in
 * REUSE).  Everything is sequentially consistent but a plain announcement, which
 * stays in its processor's store buffer until a step of its own.
 *
 * Cures that can be taken out, each must make the check fail:
 *	 NO_FENCE		readers' announcements are plain stores, and that is all
 *	 LATE_BARRIER	with BARRIER: the buffers are drained after the look round
 *	 OWN_STAMP		the stamp is the epoch the writer itself announced
 *	 EARLY_STAMP	the stamp is read before the unlink
 *	 STAMP_1		reuse at stamp + 1
 *	 TWO_SCANS		two processes look round at once and both move the epoch
 */
#ifndef READERS
#define READERS 2
#endif
#define WRITERS 1
#define NP (READERS + WRITERS)
#define OBJECTS 2
#ifndef TOP
#define TOP 5					/* the epoch goes no further than this */
#endif
#ifdef STAMP_1
#define GRACE 1
#else
#define GRACE 2
#endif
#define NOTHING 255
#if defined(NO_FENCE) || defined(BARRIER)
#define PLAIN
#endif

byte epoch = 1;
byte slot[NP];
byte buffer[NP];				/* 0: empty */
byte root;						/* the object that is linked now */
byte hand[NP] = NOTHING;		/* what a reader holds */
byte stamp[OBJECTS];			/* 0: linked or fresh */
bool advancing;

inline exchange()
{
	e = epoch;
	slot[p] = e;
	if
	:: epoch != e -> e = epoch; slot[p] = e
	:: else
	fi
}

inline enter()
{
#ifdef PLAIN
	e = epoch;
	buffer[p] = e;
	if
	:: epoch != e -> e = epoch; atomic { slot[p] = e; buffer[p] = 0 }
	:: else
	fi
#else
	exchange()
#endif
}

/* a fence on every processor, in any order and not at once */
inline barrier()
{
	i = 0;
	do
	:: i < READERS ->
		atomic {
			if
			:: buffer[i] != 0 -> slot[i] = buffer[i]; buffer[i] = 0
			:: else
			fi;
			i++
		}
	:: else -> break
	od;
	i = 0
}

inline leave()
{
	/* in the order of stores: the announcement is out before the zero */
	atomic { buffer[p] = 0; slot[p] = 0; e = 0 }
}

/* the store buffer drains when it likes */
proctype drain(byte p)
{
end:
	do
	:: atomic { buffer[p] != 0 -> slot[p] = buffer[p]; buffer[p] = 0 }
	od
}

proctype reader(byte p)
{
	byte e;

end:
	do
	:: epoch < TOP ->
		enter();
		hand[p] = root;
		/* and uses it for as long as it likes */
		hand[p] = NOTHING;
		leave()
	od
}

proctype writer(byte p)
{
	byte e, fresh, old, s, i;

end:
	do
	:: epoch < TOP ->
		exchange();
		/* a free object, or wait for one */
		fresh = 0;
		do
		:: fresh == OBJECTS -> break
		:: fresh < OBJECTS && fresh != root && stamp[fresh] == 0 -> break
		:: else -> fresh++
		od;
		if
		:: fresh < OBJECTS ->
#ifdef EARLY_STAMP
			s = epoch;
#endif
			atomic { old = root; root = fresh };
#ifdef OWN_STAMP
			s = e;
#else
#ifndef EARLY_STAMP
			s = epoch;
#endif
#endif
			atomic { stamp[old] = s; old = 0; s = 0; fresh = 0 }
		:: else -> fresh = 0
		fi;
		leave();
		/* reclaim what has expired */
		i = 0;
		do
		:: i < OBJECTS ->
			atomic {
				if
				:: stamp[i] != 0 && epoch >= stamp[i] + GRACE ->
					/* REUSE */
					assert(hand[0] != i && hand[READERS - 1] != i && root != i);
					stamp[i] = 0
				:: else
				fi;
				i++
			}
		:: else -> break
		od;
		i = 0
	od
}

/* try_advance, by whoever comes by */
proctype advance()
{
	byte e, i;
	bool good;

end:
	do
	:: atomic { epoch < TOP && !advancing ->
#ifndef TWO_SCANS
			advancing = true;
#endif
			e = epoch; good = true; i = 0 }
#if defined(BARRIER) && !defined(LATE_BARRIER)
		barrier();
#endif
		do
		:: i < NP && good ->
			atomic { good = (slot[i] == 0 || slot[i] == e); i++ }
		:: else -> break
		od;
#ifdef LATE_BARRIER
		barrier();
#endif
		atomic {
			if
			:: good -> epoch = e + 1
			:: else
			fi;
			e = 0; i = 0; good = false
		}
		advancing = false
	od
}

init {
	atomic {
		run reader(0);
#if READERS == 2
		run reader(1);
#endif
		run writer(READERS);
#ifdef PLAIN
		run drain(0);
#if READERS == 2
		run drain(1);
#endif
#endif
#ifdef TWO_SCANS
		run advance();
#endif
		run advance()
	}
}

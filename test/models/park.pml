/*
 * park.pml
 *	  Sleeping on a latch word and waking (wait, park, unlock; ax_latch.c).
 *
 * The word's low half is LOCKED, WAITERS and, for short, some other bits that
 * move under a sleeper's eyes (the tail, the version's low bits).  WAITERS
 * joins LOCKED only, in one CAS.  Sleeping is the futex: atomically, sleep only
 * if the half is what was seen.  Unlock is one fetch_add that returns the old
 * word; if it had WAITERS, that is cleared and all are woken, while others may
 * already have taken the word again.  A taker keeps WAITERS as it finds it.
 * Nobody's sleep ends by itself: the code's timeouts would only hide a loss.
 *
 * Properties:
 * - no lost wake-up: everybody gets the latch ROUNDS times (invalid end states;
 *	 and as an LTL formula, under weak fairness: a sleeper wakes);
 * - exclusion (assertion).
 *
 * Cures that can be taken out, each must make the check fail:
 *	 NO_WAITERS_RECHECK	sleeps without comparing
 *	 WAITERS_ALWAYS		WAITERS joins an open word too, and is slept on
 *	 PLAIN_UNLOCK		unlock stores what it computed from an earlier read
 *	 CLEAR_LATE			wakes first, then clears WAITERS
 *	 WAKE_ONE			wakes one sleeper though WAITERS is gone for all
 */
#define NP 3
#ifndef ROUNDS
#define ROUNDS 2
#endif

bool locked;
bool waiters;
bit other;						/* the rest of the half */
bool asleep[NP];
byte holders;
byte done;

inline wake_all()
{
	d_step {
		for (i : 0 .. NP - 1) {
			asleep[i] = false
		}
		i = 0
	}
}

proctype locker(byte p)
{
	byte round, i;
	bit seen, sw;
	bool old;

	do
	:: round == ROUNDS -> break
	:: else ->
again:
		atomic {
			if
			:: !locked -> locked = true; goto held
			:: else
			fi
		}
		/* WAITERS joins LOCKED, or was there; what was seen is slept on */
		atomic {
			if
#ifndef WAITERS_ALWAYS
			:: !locked -> goto again
#endif
			:: else -> waiters = true; seen = other
			fi
		}
		/* the futex */
		atomic {
			if
#ifndef NO_WAITERS_RECHECK
#ifdef WAITERS_ALWAYS
			:: !(waiters && other == seen) -> seen = 0; goto again
#else
			:: !(locked && waiters && other == seen) -> seen = 0; goto again
#endif
#endif
			:: else -> seen = 0; asleep[p] = true
			fi
		}
		!asleep[p];
		goto again;
held:
		atomic { holders++; assert(holders == 1) }
		/* something else of the half moves, or not: a tail, a version */
		if
		:: other = 1 - other
		:: true
		fi;
		holders--;
#ifdef PLAIN_UNLOCK
		old = waiters;
		atomic { locked = false; waiters = false }
#else
		atomic { old = waiters; locked = false }
#endif
		round++;
		if
		:: old ->
			old = false;
#ifdef CLEAR_LATE
			wake_all();
			waiters = false
#else
			waiters = false;
#ifdef WAKE_ONE
			atomic {
				if
				:: asleep[0] -> asleep[0] = false
				:: asleep[1] -> asleep[1] = false
				:: asleep[2] -> asleep[2] = false
				:: else
				fi
			}
#else
			wake_all()
#endif
#endif
		:: else
		fi
	od;
	done++
}

init {
	byte i;

	atomic {
		for (i : 0 .. NP - 1) {
			run locker(i)
		}
	}
	done == NP;
	assert(!locked && holders == 0)
}

ltl wakes { [] (asleep[0] -> <> !asleep[0]) }

/*
 * queue.pml
 *	  The queue of writers on a latch word (ax_word_acquire, ax_latch.c).
 *
 * The word is (version, tail, LOCKED, OBSOLETE); a queue node is (state, next).
 * Each atomic step is one atomic instruction of the code: a loop "read the
 * word, CAS it" is one step, since the CAS compares all that was read.  NP
 * processes own two nodes each and acquire ROUNDS times.  How each goes about
 * it is free at every turn: take the word when it is open whoever queues for
 * it, join the queue for good, or join and leave again at any moment, as head
 * too, with another node the next time.  A holder may leave the word OBSOLETE.
 *
 * Properties:
 * - exclusion: never two holders (assertion in HELD);
 * - a node is taken for reuse only when nobody can reach it: not by the tail,
 *	 not by a next, not by what a process has in hand (assertions in TAKE);
 * - headship is never lost: a process that joined for good gets the word in the
 *	 end or is told OBSOLETE, as long as every process goes on (spin's search
 *	 for invalid end states: such a process would block for ever);
 * - when all is done the word has no tail and every node is free.
 *
 * Cures that can be taken out, each must make the check fail:
 *	 NO_HANDED		who finds no link yet just goes: the late linker waits for ever
 *	 WAIT_FREE		.. and frees its node: a node is reused while the late linker
 *					has it in hand
 *	 NO_SKIP		headship is stored into the next node, left or not
 *	 PLAIN_LEAVE	LEFT is stored, not exchanged: it may overwrite HEAD
 *	 FREE_LEFT		who leaves frees its node itself
 *	 KEEP_TAIL		the last one goes without taking itself off the tail
 *	 NO_OBSOLETE	a head that finds OBSOLETE goes without passing headship on
 *	 HOLDER_KEEPS	the head that took the word does not pass headship on
 */
#define NP 3
#define N (2 * NP)
#ifndef ROUNDS
#define ROUNDS 1
#endif

#define NONE 0					/* ids of nodes: 1..N */
#define HANDED (N + 1)

#define FREE 0
#define WAITING 1
#define HEAD 2
#define LEFT 3

/* the word */
byte tail;
bool locked;
bool obsolete;

/* nodes */
byte state[N + 1];
byte next[N + 1];

/* what process p has in hand */
byte pred[NP];
byte at[NP];
byte after[NP];

byte holders;
byte done;

/* what a free node says is forgotten: that is for spin, the code need not */
inline free(x)
{
	state[x] = FREE;
	next[x] = NONE
}

inline unreachable(q)
{
	assert(tail != q);
	for (i : 1 .. N) {
		assert(state[i] == FREE || next[i] != q)
	}
	for (i : 0 .. NP - 1) {
		assert(pred[i] != q && at[i] != q && after[i] != q)
	}
}

/* Node at[p], of a head that holds its last word on it, goes; so do the left. */
inline pass()
{
	do
	:: atomic {
			if
			:: next[at[p]] == NONE ->
#ifdef NO_HANDED
				free(at[p]);
#else
				next[at[p]] = HANDED;
#ifdef WAIT_FREE
				state[at[p]] = FREE;
#endif
#endif
				at[p] = NONE;
				break
			:: else ->
				after[p] = next[at[p]]
			fi
		}
		atomic {
			if
#ifdef NO_SKIP
			:: true ->
#else
			:: state[after[p]] == WAITING ->
#endif
				/* the link stays as it is, but nobody follows it any more */
				next[at[p]] = NONE;
				state[after[p]] = HEAD; after[p] = NONE; goto passed
			:: else
			fi
		}
		/* it left: over it */
		atomic { free(at[p]); at[p] = after[p]; after[p] = NONE }
		atomic {
			if
			:: tail == at[p] ->
#ifndef KEEP_TAIL
				tail = NONE;
#endif
				free(at[p]); at[p] = NONE; break
			:: else
			fi
		}
	od;
	goto gone;
passed:
	atomic { free(at[p]); at[p] = NONE }
gone:
	skip
}

proctype writer(byte p)
{
	byte round, q;
	bool patient, mine, stale;
	byte i;

again:
	atomic {
		mine = false; q = NONE; patient = false;
		if
		:: stale || round == ROUNDS -> goto end_of_work
		:: else
		fi;
		/* which way? */
		if
		:: true -> goto barge
		:: state[2 * p + 1] == FREE -> q = 2 * p + 1
		:: state[2 * p + 1] != FREE && state[2 * p + 2] == FREE -> q = 2 * p + 2
		fi;
		if
		:: patient = true
		:: patient = false
		fi;
		/* TAKE */
		unreachable(q);
		state[q] = WAITING;
		next[q] = NONE;
		i = 0
	}
	atomic {
		if
		:: obsolete -> free(q); q = NONE; stale = true; goto again
		:: else -> pred[p] = tail; tail = q
		fi;
		if
		:: pred[p] == NONE -> state[q] = HEAD; goto head
		:: else
		fi
	}
	/* joined, not yet linked */
	atomic {
		if
		:: next[pred[p]] == HANDED -> next[pred[p]] = q; goto late
		:: else -> next[pred[p]] = q; pred[p] = NONE; goto waiting
		fi
	}
late:
	/* the one before went without us: its node is ours to free */
	atomic { free(pred[p]); pred[p] = NONE; state[q] = HEAD; goto head }

waiting:
	atomic {
		if
		:: state[q] == HEAD -> goto head
#ifdef PLAIN_LEAVE
		:: !patient -> state[q] = LEFT; q = NONE; goto again
#else
		:: !patient && state[q] == WAITING ->
#ifdef FREE_LEFT
			free(q);
#else
			state[q] = LEFT;
#endif
			q = NONE; goto again
#endif
		fi
	}

head:
	atomic {
		if
		:: obsolete ->
			stale = true;
#ifdef NO_OBSOLETE
			free(q); q = NONE; goto again
#endif
		:: !obsolete && !locked ->
			locked = true;
			mine = true
		:: !patient ->
			skip
		fi;
		/* off the tail in the same CAS */
		if
		:: tail == q ->
#ifndef KEEP_TAIL
			tail = NONE;
#endif
			free(q); q = NONE
		:: else ->
#ifdef HOLDER_KEEPS
			if
			:: mine -> free(q); q = NONE
			:: else -> at[p] = q; q = NONE
			fi
#else
			at[p] = q; q = NONE
#endif
		fi
	}
	if
	:: at[p] != NONE -> pass()
	:: else
	fi;
	if
	:: mine -> goto held
	:: else -> goto again
	fi;

barge:
	atomic {
		if
		:: obsolete -> stale = true; goto again
		:: !obsolete && !locked -> locked = true
		fi
	}
held:
	atomic { holders++; assert(holders == 1); round++ }
	atomic {
		holders--;
		locked = false;
		if
		:: true
		:: round == ROUNDS -> obsolete = true
		fi;
		goto again
	}
end_of_work:
	done++
}

init {
	byte i;

	atomic {
		for (i : 0 .. NP - 1) {
			run writer(i)
		}
	}
	done == NP;
	d_step {
		assert(tail == NONE);
		for (i : 1 .. N) {
			assert(state[i] == FREE)
		}
	}
}

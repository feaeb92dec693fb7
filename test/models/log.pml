/*
 * log.pml
 *	  When a data node of HydraList may be retired (hy_list.c, hy_change.c, hy_remove.c).
 *
 * A list of node 0, which stays, and up to two others, which come and go.  A writer that has the
 * latch links a node and pushes its coming, or unlinks it and pushes its going.  Each time it writes the
 * link back of the node behind, before it pushes.  That of a node that goes stays as it was.
 * One latch stands for those of the nodes: of what changes at one place, one is always the
 * same.  An applier claims the log.  It takes the stack, reverses it and tells the search layer entry by entry.
 * When a going is told the node is retired.  It is reused two epochs later, as epoch.pml has it:
 * here when every reader that was inside at its retirement has left.
 *
 * A reader enters, takes any node that the search layer names, or node 0.  From an obsolete one it
 * goes back along "prev", from one in the list it goes on along "next".  Then it leaves.
 *
 * Properties: nobody has a node in hand that is reused (assertion at USE).  An obsolete node leads to
 * one that is not reused, either.
 * In the end the search layer names the nodes of the list and no others.
 *
 * Cures that can be taken out, each must make the check fail:
 *	 NO_LATCH		the change is pushed when the latch was given back
 *	 NEWEST_FIRST	the applier does not reverse what it took
 *	 TWO_APPLY		two processes apply at once
 *	 RETIRE_EARLY	a node is retired when it is unlinked, not when that was told
 *	 NO_BACK		the link back of the node behind one that goes stays as it was
 */
#define NODES 4					/* 0: the first, never gone */
#define NIL 255
#ifndef CHANGES
#define CHANGES 4				/* of all writers */
#endif
#define READERS 1
#define DEPTH 4

/* a node */
bool linked[NODES];
bool gone[NODES];				/* obsolete */
bool told[NODES];				/* the search layer names it */
bool retired[NODES];
byte blocked[NODES];			/* reader that was inside when it was retired, + 1 */
byte next[NODES];
byte prev[NODES];
bool fresh[NODES];				/* free to be made a node */

/* the log: a stack of node * 2 + goes, and what an applier took of it */
byte stack[DEPTH];
byte high;
bool claimed;
bool latch;						/* of node 0, which is before every place */
byte changes;
byte doing;						/* writers in a change */
bool inside[READERS];
byte hand[READERS] = NIL;

inline push(what)
{
	atomic { assert(high < DEPTH); stack[high] = what; high++ }
}

/* reused when those have left who are inside now */
inline retire(n)
{
	atomic {
		retired[n] = true;
		blocked[n] = (inside[0] -> 1 : 0)
	}
}

/* n, which is behind "before", goes: its keys are there */
inline merge()
{
	atomic { next[before] = next[n]; linked[n] = false; gone[n] = true };
#ifndef NO_BACK
	if
	:: next[n] != NIL -> prev[next[n]] = before
	:: else
	fi;
#endif
#ifdef RETIRE_EARLY
	retire(n);
#endif
#ifdef NO_LATCH
	atomic { latch = false; given = true };
#endif
	push(n * 2 + 1)
}

proctype writer()
{
	byte n, before;
	bool given;

	do
	:: atomic { changes < CHANGES && !latch -> latch = true; doing++; changes++; before = 0 }
		if
		:: next[0] == NIL || next[next[0]] == NIL ->
			/* a split: a node comes behind the first */
			atomic {
				n = NIL;
				if
				:: fresh[1] -> n = 1
				:: fresh[2] -> n = 2
				:: fresh[3] -> n = 3
				:: else
				fi
			};
			if
			:: n != NIL ->
				atomic {
					fresh[n] = false; gone[n] = false; prev[n] = 0;
					next[n] = next[0]; linked[n] = true; next[0] = n
				};
				if
				:: next[n] != NIL -> prev[next[n]] = n
				:: else
				fi;
#ifdef NO_LATCH
				atomic { latch = false; given = true };
#endif
				push(n * 2)
			:: else
			fi
		:: next[0] != NIL ->
			n = next[0];
			merge()
		:: next[0] != NIL && next[next[0]] != NIL ->
			before = next[0];
			n = next[before];
			merge()
		fi;
		atomic {
			if
			:: !given -> latch = false
			:: else
			fi;
			given = false; doing--; n = 0; before = 0
		}
	:: changes >= CHANGES -> break
	od
}

#ifdef TWO_APPLY
#define FREE true
#else
#define FREE (!claimed)
#endif

proctype applier()
{
	byte took[DEPTH];
	byte k, i, n;

end:
	do
	:: atomic { high > 0 && FREE ->
			claimed = true; k = 0;
			do
			:: k < high -> took[k] = stack[k]; k++
			:: else -> break
			od;
			high = 0; i = 0
		}
		do
		:: i < k ->
#ifdef NEWEST_FIRST
			n = took[k - 1 - i];
#else
			n = took[i];
#endif
			if
			:: n % 2 == 0 -> told[n / 2] = true
			:: else ->
				told[n / 2] = false;
#ifndef RETIRE_EARLY
				retire(n / 2)
#endif
			fi;
			i++
		:: else -> break
		od;
		atomic { claimed = false; k = 0; i = 0; n = 0 }
	od
}

/* what nobody can have any more is free again */
proctype reuse()
{
	byte n;

end:
	do
	:: atomic { retired[1] && blocked[1] == 0 -> n = 1 }
		goto free
	:: atomic { retired[2] && blocked[2] == 0 -> n = 2 }
		goto free
	:: atomic { retired[3] && blocked[3] == 0 -> n = 3 }
free:
		atomic {
			/* USE */
			assert(hand[0] != n && !told[n] && !linked[n]);
			retired[n] = false; fresh[n] = true; n = 0
		}
	od
}

proctype reader(byte p)
{
	inside[p] = true;
	atomic {
		if
		:: hand[p] = 0
		:: told[1] -> hand[p] = 1
		:: told[2] -> hand[p] = 2
		:: told[3] -> hand[p] = 3
		fi
	};
	do
	:: atomic { gone[hand[p]] ->
			hand[p] = prev[hand[p]];
			assert(!fresh[hand[p]])
		}
	/* the link is read under the node's version, and followed while it holds */
	:: atomic { !gone[hand[p]] && next[hand[p]] != NIL -> hand[p] = next[hand[p]] }
	:: atomic { !gone[hand[p]] -> break }
	od;
	atomic {
		hand[p] = NIL; inside[p] = false;
		if
		:: blocked[1] == p + 1 -> blocked[1] = 0
		:: else
		fi;
		if
		:: blocked[2] == p + 1 -> blocked[2] = 0
		:: else
		fi;
		if
		:: blocked[3] == p + 1 -> blocked[3] = 0
		:: else
		fi
	}
}

/* all is done, and nothing waits: the search layer is that of the list */
proctype monitor()
{
end:
	atomic {
		changes >= CHANGES && doing == 0 && high == 0 && !claimed &&
		(told[1] != linked[1] || told[2] != linked[2] || told[3] != linked[3]) ->
			assert(false)
	}
}

init {
	atomic {
		linked[0] = true; next[0] = NIL; prev[0] = NIL;
		fresh[1] = true; fresh[2] = true; fresh[3] = true;
		next[1] = NIL; next[2] = NIL; next[3] = NIL;
		run writer();
		run writer();
		run applier();
#ifdef TWO_APPLY
		run applier();
#endif
		run reuse();
		run reader(0);
		run monitor()
	}
}

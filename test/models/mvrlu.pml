/*
 * mvrlu.pml
 *	  Commits of versions, and readers of a moment (core/hydra/hm_version.c).
 *
 * Two nodes, A and B, each a chain of versions.  A writer, which has both latches, makes a
 * version of each: publishes both as pending, marks the stamp of A's, which leads, draws
 * a number from the clock and puts it there unless somebody did.  Then it copies the stamp to B's,
 * and retires the versions before.  A reader announces itself, reads the clock, and takes
 * of A and then of B the newest version that is not later.  It draws and puts a number where it
 * meets the mark.  A retired version is free when all have left who were inside when it was
 * retired; epoch.pml has how that is found out.
 *
 * Properties: a reader takes both versions of a commit or none of them; it touches
 * no version that is free.
 *
 * Cures that can be taken out, each must make the check fail:
 *	 NO_HELP		a reader goes by a version that is marked (the published code: M1)
 *	 EARLY_MARK		the mark comes before all versions are published
 *	 CLOCK_FIRST	a reader reads the clock, then announces itself
 *	 EARLY_RETIRE	the versions before are retired before the number is drawn
 *	 BLIND_STORE	the writer stores its number, whoever put one there
 */
#ifndef READERS
#define READERS 1
#endif
#ifndef COMMITS
#define COMMITS 2
#endif
#define PENDING 255
#define MARKED 254

byte clock;
byte head[2];					/* A and B: the newest version, by number */
byte lead[COMMITS + 1];			/* stamps of A's versions */
byte led[COMMITS + 1];			/* and B's own */
bool retired[COMMITS + 1];
byte waits[COMMITS + 1];		/* who was inside then: a bit each */
byte inside;

inline touch(v)
{
	assert(!(retired[v] && waits[v] == 0))
}

/* the stamp of version v of node n, in s */
inline stamp_of(n, v)
{
	touch(v);
	if
	:: n == 0 -> s = lead[v]
	:: else ->
		s = led[v];
		if
		:: s == PENDING -> touch(v); s = lead[v]
		:: else
		fi
	fi;
#ifndef NO_HELP
	if
	:: s == MARKED ->
		atomic { clock++; d = clock };
		atomic {
			if
			:: lead[v] == MARKED -> lead[v] = d
			:: else
			fi;
			s = lead[v]; d = 0
		}
	:: else
	fi
#endif
}

inline take(n)
{
	v = head[n];
	stamp_of(n, v);
	do
	:: s > t -> v--; stamp_of(n, v)
	:: else -> break
	od;
	s = 0
}

inline retire(v)
{
	atomic { retired[v] = true; waits[v] = inside }
}

proctype reader(byte p)
{
	byte t, v, s, d, a;

#ifdef CLOCK_FIRST
	t = clock;
	inside = inside | (1 << p);
#else
	inside = inside | (1 << p);
	t = clock;
#endif
	take(0);
	a = v;
	take(1);
	assert(a == v);
	d_step {
		inside = inside & ~(1 << p);
		for (v : 0 .. COMMITS) { waits[v] = waits[v] & ~(1 << p) };
		t = 0; v = 0; a = 0
	}
}

proctype writer()
{
	byte k, d;

	for (k : 1 .. COMMITS) {
#ifdef EARLY_RETIRE
		retire(k - 1);
#endif
		head[0] = k;
#ifdef EARLY_MARK
		lead[k] = MARKED;
#endif
		head[1] = k;
#ifndef EARLY_MARK
		lead[k] = MARKED;
#endif
		atomic { clock++; d = clock };
#ifdef BLIND_STORE
		lead[k] = d;
#else
		atomic {
			if
			:: lead[k] == MARKED -> lead[k] = d
			:: else
			fi
		}
#endif
		led[k] = lead[k];
#ifndef EARLY_RETIRE
		retire(k - 1)
#endif
	}
}

init {
	atomic {
		byte i;
		for (i : 1 .. COMMITS) { lead[i] = PENDING; led[i] = PENDING };
		run writer();
		run reader(0);
#if READERS == 2
		run reader(1)
#endif
	}
}

/*
 * waiting.c
 *	  Waits for what another process does, where no lock stands for it.
 *
 * src/area/README.md: Waits
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "area/area.h"

bool
art_doze(long ms, uint32 wait_event)
{
	int			rc = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							   ms, wait_event);

	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return (rc & WL_LATCH_SET) != 0;
}

bool
art_wait_for(bool (*done) (void *arg), void *arg, TimestampTz until, long ms,
			 ConditionVariable *cv, uint32 wait_event)
{
	bool		is = done(arg);

	if (is)
		return true;
	/* from here on no signal is missed; so it may have come before */
	if (cv != NULL)
		ConditionVariablePrepareToSleep(cv);
	for (int i = 1; !(is = done(arg)) && (until == 0 || GetCurrentTimestamp() < until); i++)
	{
		if (cv != NULL)
			(void) ConditionVariableTimedSleep(cv, ms, wait_event);
		else
			(void) art_doze(Min(i, ms), wait_event);
	}
	if (cv != NULL)
		ConditionVariableCancelSleep();
	return is;
}

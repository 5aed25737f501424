package metrics

import "github.com/parley-voice/parley/control/failover"

func failoverReadings() []reading[failover.Stats] {
	return []reading[failover.Stats]{
		gauge("parley_journal_entries", "Calls in this node's journal.",
			func(s failover.Stats) float64 { return float64(s.Journal.Entries) }),
		count("parley_journal_writes_total", "Writes of the journal, each with one fsync.",
			func(s failover.Stats) int64 { return s.Journal.Writes }),
		count("parley_journal_failures_total", "Writes of the journal that failed.", func(s failover.Stats) int64 { return s.Journal.Failures }),
		count("parley_journal_dropped_total", "Journal entries dropped before 24 h because the journal was full.",
			func(s failover.Stats) int64 { return s.Journal.Dropped }),
		count("parley_journal_damaged_total", "Lines of the journal that could not be read.",
			func(s failover.Stats) int64 { return s.Journal.Damaged }),
		count("parley_database_reverts_total", "Detected returns of the database to an earlier state.",
			func(s failover.Stats) int64 { return s.Changes }),
		gauge("parley_database_paused", "1 while dialing is paused: the database returned to an earlier state, and journals are missing.",
			func(s failover.Stats) float64 { return truth(s.Paused) }),
		gauge("parley_database_missing_nodes", "Nodes that did not report: calls from before the failover are held.",
			func(s failover.Stats) float64 { return float64(s.Missing) }),
		count("parley_database_restored_calls_total", "Lost calls that were restored completely.",
			func(s failover.Stats) int64 { return s.Restored }),
		count("parley_database_settled_calls_total", "Lost calls whose end was restored from the journal.",
			func(s failover.Stats) int64 { return s.Settled }),
		count("parley_database_stated_calls_total", "Lost calls of which only the fact that they were sent was restored.",
			func(s failover.Stats) int64 { return s.Facts }),
		count("parley_database_lost_calls_total", "Lost calls that could not be restored.", func(s failover.Stats) int64 { return s.Lost }),
	}
}

package admission

import (
	"math"
	"math/bits"

	"github.com/parley-voice/parley/control/pricing"
)

// RecentCosts sums the costs of the last calls that were dialed and have ended.
type RecentCosts struct {
	Calls        int
	Sum, Largest pricing.Amount
}

// recentCounted bounds the calls that count, recentRead those that are read to find them.
const recentRead, recentCounted = "500", "100"

// RecentCostsSQL is a subquery of the columns of RecentCosts. It reads the newest calls that hold for the condition.
func RecentCostsSQL(where string) string {
	return `(SELECT count(*) AS calls, coalesce(sum(cost_nano), 0)::bigint AS sum, coalesce(max(cost_nano), 0) AS largest FROM (
	SELECT cost_nano FROM (
		SELECT cost_nano, dialed_at, answered_at FROM calls WHERE ` + where + ` ORDER BY created_at DESC, id DESC LIMIT ` + recentRead + `) newest
	WHERE cost_nano IS NOT NULL AND coalesce(dialed_at, answered_at) IS NOT NULL LIMIT ` + recentCounted + `) counted)`
}

// enoughCalls is the number of calls whose mean is the expected cost of the next one.
const enoughCalls = 20

// Expected returns the expected cost of a call that a budget pays: the mean of the recent calls. While fewer than 20
// are known, each missing one counts as the largest known, and at least as a twentieth of the budget, so that at most
// 20 calls run before the first has ended.
func (r RecentCosts) Expected(budget pricing.Amount) pricing.Amount {
	if r.Calls >= enoughCalls {
		return divideUp(r.Sum, r.Calls)
	}
	// Each call counts a twentieth; the parts are divided first because sums of large budgets overflow.
	missing := pricing.Amount(enoughCalls - r.Calls)
	return divideUp(r.Sum, enoughCalls) + divideUp(max(budget/enoughCalls, r.Largest), enoughCalls)*missing
}

func divideUp(a pricing.Amount, n int) pricing.Amount {
	return (a + pricing.Amount(n) - 1) / pricing.Amount(n)
}

// A Spending is the use of a budget.
type Spending struct {
	Budget   pricing.Amount // 0 means no limit
	Spent    pricing.Amount // by ended calls, with their analyses
	Expected pricing.Amount // cost of one call
	Calls    int            // queued and in progress
}

// Reserved returns the expected cost of the queued calls and those in progress.
func (s Spending) Reserved() pricing.Amount {
	high, low := bits.Mul64(uint64(max(s.Expected, 0)), uint64(max(s.Calls, 0))) //nolint:gosec // not negative
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return pricing.Amount(low) //nolint:gosec // checked
}

// Left returns what is neither spent nor reserved, not below 0.
func (s Spending) Left() pricing.Amount {
	left := s.Budget - s.Spent
	if reserved := s.Reserved(); left > reserved {
		return left - reserved
	}
	return 0
}

// Allows reports whether a further call may start: with it, all calls at their expected cost stay within the budget.
func (s Spending) Allows() bool {
	return s.Budget <= 0 || s.Left() > 0 && s.Expected <= s.Left()
}

// IsUsedUp reports whether ended calls have spent the budget.
func (s Spending) IsUsedUp() bool { return s.Budget > 0 && s.Spent >= s.Budget }

// isShort reports whether no call may start even after the present ones.
func (s Spending) isShort() bool {
	s.Calls = 0
	return !s.Allows()
}

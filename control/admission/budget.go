package admission

import (
	"math"
	"math/bits"

	"github.com/parley-voice/parley/control/pricing"
)

// RecentCosts summarizes the costs of the last calls that were dialed and have ended.
type RecentCosts struct {
	Calls        int
	Sum, Largest pricing.Amount
}

// RecentCostsSQL counts at most recentCounted calls. To find them, it reads at most recentRead of the newest calls.
const recentRead, recentCounted = "500", "100"

// RecentCostsSQL returns a subquery with the columns of RecentCosts. It reads the newest calls that meet the
// condition where.
func RecentCostsSQL(where string) string {
	return `(SELECT count(*) AS calls, coalesce(sum(cost_nano), 0)::bigint AS sum, coalesce(max(cost_nano), 0) AS largest FROM (
	SELECT cost_nano FROM (
		SELECT cost_nano, dialed_at, answered_at FROM calls WHERE ` + where + ` AND status NOT IN ('queued', 'ringing', 'ongoing')
		ORDER BY created_at DESC, id DESC LIMIT ` + recentRead + `) newest
	WHERE cost_nano IS NOT NULL AND coalesce(dialed_at, answered_at) IS NOT NULL LIMIT ` + recentCounted + `) counted)`
}

// enoughCalls is the number of recent calls whose mean is a good estimate of the cost of the next call.
const enoughCalls = 20

// Expected returns the expected cost of the next call that a budget pays for. It is the mean of the recent calls if
// there are at least 20. Otherwise each missing call counts as the largest of three amounts: the most expensive recent
// call, a twentieth of the budget, and, if there are 20 similar calls, their mean. Thus at most 20 calls run before
// the first has ended.
func (r RecentCosts) Expected(budget pricing.Amount, similar RecentCosts) pricing.Amount {
	if r.IsEnough() {
		return divideUp(r.Sum, r.Calls)
	}
	least := max(budget/enoughCalls, r.Largest)
	if similar.IsEnough() {
		least = max(least, divideUp(similar.Sum, similar.Calls))
	}
	// Each of the 20 calls contributes a twentieth. The parts are divided before they are added, because the sum of
	// large budgets could overflow.
	missing := pricing.Amount(enoughCalls - r.Calls)
	return divideUp(r.Sum, enoughCalls) + divideUp(least, enoughCalls)*missing
}

// IsEnough reports whether there are enough calls for a good estimate.
func (r RecentCosts) IsEnough() bool { return r.Calls >= enoughCalls }

func divideUp(a pricing.Amount, n int) pricing.Amount {
	return (a + pricing.Amount(n) - 1) / pricing.Amount(n)
}

// Spending describes how much of a budget is used.
type Spending struct {
	Budget   pricing.Amount // 0 means no limit
	Spent    pricing.Amount // cost of ended calls, including their analyses
	Expected pricing.Amount // expected cost of one call
	Calls    int            // number of queued and running calls
}

// Reserved returns the expected cost of the queued and running calls.
func (s Spending) Reserved() pricing.Amount {
	high, low := bits.Mul64(uint64(max(s.Expected, 0)), uint64(max(s.Calls, 0)))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return pricing.Amount(low)
}

// Left returns the part of the budget that is neither spent nor reserved, at least 0.
func (s Spending) Left() pricing.Amount {
	left := s.Budget - s.Spent
	if reserved := s.Reserved(); left > reserved {
		return left - reserved
	}
	return 0
}

// Allows reports whether one more call may start. It may if the expected cost of all calls, including this one, stays
// within the budget.
func (s Spending) Allows() bool {
	return s.Budget <= 0 || s.Left() > 0 && s.Expected <= s.Left()
}

// IsUsedUp reports whether ended calls have used the whole budget.
func (s Spending) IsUsedUp() bool { return s.Budget > 0 && s.Spent >= s.Budget }

// isShort reports whether the unspent budget is too small for a call, even with no call queued or running.
func (s Spending) isShort() bool {
	s.Calls = 0
	return !s.Allows()
}

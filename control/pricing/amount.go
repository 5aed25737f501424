package pricing

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Amount is an amount of money in billionths of a currency unit, so that sums are exact. Its text and its JSON number
// have at most nine decimals.
type Amount int64

// unit is one unit of a currency.
const unit = 1_000_000_000

// maxAmount is the largest amount that ParseAmount accepts: a million currency units.
const maxAmount Amount = 1_000_000 * unit

var errAmount = errors.New("use a number from 0 to 1000000 with at most 9 decimals, such as 0.0043")

// ParseAmount parses an amount like "0.0043".
func ParseAmount(text string) (Amount, error) {
	whole, decimals, _ := strings.Cut(text, ".")
	if whole == "" || len(whole) > 7 || len(decimals) > 9 || strings.HasSuffix(text, ".") {
		return 0, fmt.Errorf("%q: %w", text, errAmount)
	}
	n := Amount(0)
	for _, c := range whole + decimals + strings.Repeat("0", 9-len(decimals)) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%q: %w", text, errAmount)
		}
		n = 10*n + Amount(c-'0')
	}
	if n > maxAmount {
		return 0, fmt.Errorf("%q: %w", text, errAmount)
	}
	return n, nil
}

// Round converts a number of currency units to the closest amount. It returns 0 if units is not finite.
func Round(units float64) Amount {
	r := new(big.Rat).SetFloat64(units)
	if r == nil {
		return 0 // infinite or not a number
	}
	return round(r.Num(), r.Denom(), unit)
}

// Units returns the amount as a number of currency units, for metrics and charts.
func (a Amount) Units() float64 { return float64(a) / unit }

// String returns the amount as a decimal number without trailing zeros.
func (a Amount) String() string {
	sign := ""
	if a < 0 {
		sign, a = "-", -a
	}
	text := fmt.Sprintf("%s%d.%09d", sign, a/unit, a%unit)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON implements json.Marshaler. It writes a number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (a *Amount) UnmarshalJSON(text []byte) (err error) {
	*a, err = ParseAmount(string(text))
	return err
}

// round returns n*times/d, rounded to the nearest integer; halves are rounded up. d must be positive. n and times must
// not be negative.
func round(n, d *big.Int, times int64) Amount {
	x := new(big.Int).Mul(n, big.NewInt(2*times))
	x.Add(x, d)
	x.Quo(x, new(big.Int).Lsh(d, 1))
	return Amount(x.Int64())
}

package trunks

import (
	"fmt"
	"slices"
	"strings"
)

// Names that are valid as allowed destinations, besides prefixes. Each name stands for one country with the country
// code 1.
const (
	UnitedStates = "US" // the states, the District of Columbia, and the territories
	Canada       = "CA"
)

// canadianCodes are the area codes of Canada, including reserved codes.
const canadianCodes = " 204 226 236 249 250 257 263 289 306 343 354 365 367 368 382 387 403 416 418 428 431 437 438 450 " +
	"460 468 474 506 514 519 537 548 568 579 581 584 587 600 604 613 622 633 639 644 647 655 672 677 " +
	"683 688 705 709 742 753 778 780 782 807 819 825 867 873 879 902 905 942 "

// expensiveCodes are the area codes of the other countries with country code 1, mostly in the Caribbean. A call to them
// costs many times as much as a call within the United States.
const expensiveCodes = " 242 246 264 268 284 345 441 473 649 658 664 721 758 767 784 809 829 849 868 869 876 "

func hasCode(codes, code string) bool { return strings.Contains(codes, " "+code+" ") }

// Permits reports whether an allowed destination (a prefix or a name) permits the number d.
func Permits(destination, d string) bool {
	if destination != UnitedStates && destination != Canada {
		return strings.HasPrefix(d, destination)
	}
	if len(d) != 11 || d[0] != '1' {
		return false
	}
	code := d[1:4]
	if destination == Canada {
		return hasCode(canadianCodes, code)
	}
	return !hasCode(canadianCodes, code) && !hasCode(expensiveCodes, code)
}

// ExpensiveDestinations returns the allowed prefixes that permit calls to expensive countries with country code 1, or
// nil. It omits prefixes with a complete area code, because these were chosen on purpose.
func (s Subgroup) ExpensiveDestinations() []string {
	var all []string
	for _, d := range s.AllowedDestinations {
		if len(d) < len("1809") && d != UnitedStates && d != Canada &&
			slices.ContainsFunc(strings.Fields(expensiveCodes), func(code string) bool { return strings.HasPrefix("1"+code, d) }) {
			all = append(all, d)
		}
	}
	return all
}

// DestinationWarning returns a warning that lists ExpensiveDestinations, or "" if there are none.
func (s Subgroup) DestinationWarning() string {
	all := s.ExpensiveDestinations()
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"allowed destination %q also reaches Caribbean countries of +1 (809, 876, 242 and others), where calls are expensive: "+
			"use US, CA or whole area codes",
		strings.Join(all, ", "),
	)
}

package control

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // makes the program independent of the host's time zone data
)

var regionCity = regexp.MustCompile(`^[A-Za-z_]+(/[A-Za-z0-9_+\-]+)+$`)

// Zone returns the time zone with a name like Europe/Berlin, or UTC. It rejects names of fixed offsets and "Local".
func Zone(name string) (*time.Location, error) {
	ok := name == "UTC" || name == "Etc/UTC"
	if !ok && regionCity.MatchString(name) {
		region, _, _ := strings.Cut(name, "/")
		switch region {
		case "Etc", "posix", "right", "SystemV":
		default:
			ok = true
		}
	}
	if ok {
		if l, err := time.LoadLocation(name); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%q is not a time zone; use a name like America/New_York, or UTC", name)
}

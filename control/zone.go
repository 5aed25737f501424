package control

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // an old host must not shift calls by an hour
)

var regionCity = regexp.MustCompile(`^[A-Za-z_]+(/[A-Za-z0-9_+\-]+)+$`)

// Zone returns the time zone of a name like Europe/Berlin, or UTC. Names that
// stand for a fixed offset, or for whatever the host is set to, are none.
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
	return nil, fmt.Errorf("%q is no time zone: use a name like America/New_York, or UTC", name)
}

package live

import "testing"

func TestProvider(t *testing.T) {
	for _, c := range []struct {
		p     Provider
		state string
	}{
		{Provider{}, "up"},
		{Provider{Asked: 3, Most: 4}, "up"},
		{Provider{Asked: 4, Most: 4}, "degraded"},
		{Provider{Open: true}, "down"},
		{Provider{Open: true, Tried: true}, "degraded"},
	} {
		if c.p.State() != c.state || c.p.Says() == "" {
			t.Errorf("%+v is %s: %s", c.p, c.p.State(), c.p.Says())
		}
	}
}

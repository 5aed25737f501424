package apply

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed carriers.yaml
var carriersFile []byte

// Carrier is a profile: what trunks to a known carrier need.
type Carrier struct {
	Name    string   `json:"name"            yaml:"name"`
	Title   string   `json:"title"           yaml:"title"`
	Checked string   `json:"checked"         yaml:"checked"` // day on which the sources were read
	Hosts   []string `json:"hosts"           yaml:"hosts"`   // hosts of its proxies; * is any text
	Proxy   string   `json:"proxy,omitempty" yaml:"proxy"`   // what to enter as proxy; empty if Trunk has one
	Trunk   Trunk    `json:"-"               yaml:"trunk"`   // the keys that the profile sets
	Facts   []Fact   `json:"facts"           yaml:"facts"`
	Codes   []Code   `json:"codes"           yaml:"codes"`
	Setup   []string `json:"setup"           yaml:"setup"` // what to do at the carrier
	Ask     []string `json:"ask"             yaml:"ask"`   // what no source says
}

// Fact is a statement of a carrier's documentation about a key of a trunk or another subject.
type Fact struct {
	Key    string `json:"key"    yaml:"key"`
	Text   string `json:"text"   yaml:"text"`
	Source string `json:"source" yaml:"source"`
	Quoted bool   `json:"quoted" yaml:"quoted"` // read in a third party's quote
}

// Code is a response with a known meaning. Reason is a regular expression for the reason phrase.
type Code struct {
	Status int    `json:"status"           yaml:"status"`
	Reason string `json:"reason,omitempty" yaml:"reason"`
	Means  string `json:"means"            yaml:"means"`
	Source string `json:"source"           yaml:"source"`
}

// Carriers is a list of profiles.
type Carriers []Carrier

// AllCarriers returns the profiles of this version.
func AllCarriers() (all Carriers, err error) {
	d := yaml.NewDecoder(bytes.NewReader(carriersFile))
	d.KnownFields(true)
	if err = d.Decode(&all); err != nil {
		return nil, fmt.Errorf("carriers.yaml: %w", err)
	}
	return all, nil
}

// Names returns the names that the key carrier accepts.
func (all Carriers) Names() []string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	slices.Sort(names)
	return names
}

// Find returns the profile with this name. Its error names the accepted names.
func (all Carriers) Find(name string) (Carrier, error) {
	for _, c := range all {
		if c.Name == name {
			return c, nil
		}
	}
	hint := ""
	for _, n := range all.Names() {
		if distance(n, strings.ToLower(name)) <= 2 {
			hint = fmt.Sprintf(" (did you mean %s?)", n)
			break
		}
	}
	return Carrier{}, fmt.Errorf("%q%s: use %s", name, hint, strings.Join(all.Names(), ", "))
}

// distance returns how many bytes must be inserted, removed or replaced to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// Settings returns the keys that the profile sets, as in the operator's file.
func (c Carrier) Settings() (map[string]any, error) {
	var n yaml.Node
	if err := n.Encode(c.Trunk); err != nil {
		return nil, err
	}
	prune(&n)
	keys := map[string]any{}
	err := n.Decode(&keys)
	return keys, err
}

// Fill sets the keys that t lacks.
func (c Carrier) Fill(t *Trunk) {
	fillDefaults(reflect.ValueOf(t).Elem(), reflect.ValueOf(&c.Trunk).Elem())
}

// FillEmpty is like Fill, but also sets the keys that t leaves empty.
func (c Carrier) FillEmpty(t *Trunk) {
	v := reflect.ValueOf(t).Elem()
	for _, f := range v.Fields() {
		if f.Kind() != reflect.Pointer || f.IsNil() {
			continue
		}
		e := f.Elem()
		if isList := e.Kind() == reflect.Slice || e.Kind() == reflect.Map; e.IsZero() || isList && e.Len() == 0 {
			f.SetZero()
		}
	}
	t.Carrier = &c.Name
	if l := c.Trunk.Limits; l != nil && t.Limits != nil {
		t.Limits.CallsPerSecond = cmp.Or(t.Limits.CallsPerSecond, l.CallsPerSecond)
		t.Limits.ConcurrentCalls = cmp.Or(t.Limits.ConcurrentCalls, l.ConcurrentCalls)
	}
	c.Fill(t)
}

// checkProxy returns a warning if a proxy is none of the carrier's hosts.
func (c Carrier) checkProxy(proxy string) string {
	host := proxyHost(proxy)
	if len(c.Hosts) == 0 || c.hasHost(host) {
		return ""
	}
	return fmt.Sprintf("proxy %s is no host of %s: use %s", host, c.Title, strings.Join(c.Hosts, ", "))
}

func (c Carrier) hasHost(host string) bool {
	return slices.ContainsFunc(c.Hosts, func(pattern string) bool {
		ok, err := path.Match(pattern, host)
		return ok && err == nil
	})
}

// proxyHost returns the host of a SIP URI.
func proxyHost(proxy string) string {
	_, rest, _ := strings.Cut(proxy, ":")
	rest, _, _ = strings.Cut(rest, ";")
	u := url.URL{Host: rest}
	return strings.ToLower(u.Hostname())
}

// Explain returns what a response of a proxy means, or "" if its carrier is unknown or documents no meaning.
func (all Carriers) Explain(proxy string, status int, reason string) string {
	host := proxyHost(proxy)
	for _, c := range all {
		if !c.hasHost(host) {
			continue
		}
		for _, code := range c.Codes {
			if code.Status != status {
				continue
			}
			if ok, err := regexp.MatchString(code.Reason, reason); ok && err == nil {
				return fmt.Sprintf("%s: %s (%s)", c.Title, code.Means, code.Source)
			}
		}
	}
	return ""
}

// fillCarriers sets the keys that the profiles of the file's trunks have and the trunks lack.
func (s Spec) fillCarriers() error {
	all, err := AllCarriers()
	if err != nil {
		return err
	}
	for i, o := range s.Organizations {
		for j := range o.Trunks {
			t := &o.Trunks[j]
			if t.Carrier == nil {
				continue
			}
			c, err := all.Find(*t.Carrier)
			if err != nil {
				return fmt.Errorf("organizations[%d].trunks[%d].carrier: %w", i, j, err)
			}
			c.Fill(t)
		}
	}
	return nil
}

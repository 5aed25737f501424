package apply

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/parley-voice/parley/control"
)

//go:embed carriers.yaml
var carriersFile []byte

// Carrier is a profile: what trunks to a known carrier need.
type Carrier struct {
	Name    string   `json:"name"            yaml:"name"`
	Title   string   `json:"title"           yaml:"title"`
	Checked string   `json:"checked"         yaml:"checked"` // day on which the sources were read
	Hosts   []string `json:"hosts"           yaml:"hosts"`   // hosts of its proxies; * is any text
	Proxy   string   `json:"proxy,omitempty" yaml:"proxy"`   // with NAME and a comment after a comma; empty if Trunk has one
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

// Code is a response with a known meaning. Its reason phrase contains one of Reasons, in upper or lower case, as whole
// words; without Reasons any phrase matches.
type Code struct {
	Status  int      `json:"status"            yaml:"status"`
	Reasons []string `json:"reasons,omitempty" yaml:"reasons"`
	Means   string   `json:"means"             yaml:"means"`
	Source  string   `json:"source"            yaml:"source"`
}

func (c Code) matches(status int, reason string) bool {
	return c.Status == status && (len(c.Reasons) == 0 || slices.ContainsFunc(c.Reasons, func(words string) bool {
		ok, err := regexp.MatchString(`(?i)\b`+regexp.QuoteMeta(words)+`\b`, reason)
		return ok && err == nil
	}))
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
	hint := control.DidYouMean(name, all.Names())
	if hint != "" {
		hint = " (" + hint + ")"
	}
	return Carrier{}, fmt.Errorf("%q%s: use %s", name, hint, strings.Join(all.Names(), ", "))
}

// Settings returns the keys that the profile sets, as in the operator's file.
func (c Carrier) Settings() (map[string]any, error) {
	text, err := c.TrunkYAML()
	if err != nil {
		return nil, err
	}
	keys := map[string]any{}
	err = yaml.Unmarshal([]byte(text), &keys)
	return keys, err
}

// YAML returns the lines of a trunk in the operator's file that the profile leaves to the operator, without indentation.
// Values to enter are control.Placeholder.
func (c Carrier) YAML() []string {
	lines := []string{"carrier: " + c.Name}
	if c.Proxy != "" {
		proxy, comment, _ := strings.Cut(c.Proxy, ", ")
		lines = append(lines, fmt.Sprintf("proxy: %q   # %s", strings.ReplaceAll(proxy, "NAME", control.Placeholder), comment))
	}
	return append(lines, CredentialLines(c.Trunk.Realm == nil)...)
}

// CredentialLines returns the lines of a trunk with credentials. With realm they include the realm.
func CredentialLines(realm bool) []string {
	lines := []string{
		"username: " + control.Placeholder + "             # leave out username, password and realm if the carrier knows your IP address",
		"password: " + control.Placeholder,
	}
	if realm {
		lines = append(lines, "realm: "+control.Placeholder+"                # the carrier's realm, which gets a digest of the password")
	}
	return lines
}

// TrunkYAML returns the keys that the profile sets, in the form of the operator's file.
func (c Carrier) TrunkYAML() (string, error) {
	var n yaml.Node
	if err := n.Encode(c.Trunk); err != nil {
		return "", err
	}
	prune(&n)
	for _, list := range n.Content {
		if list.Kind != yaml.ScalarNode {
			list.Style = yaml.FlowStyle
		}
	}
	text, err := yaml.Marshal(&n)
	return string(text), err
}

// Fill sets the keys that t lacks, and the limits that the limits of t lack.
func (c Carrier) Fill(t *Trunk) {
	if t.Limits != nil && c.Trunk.Limits != nil {
		fillDefaults(reflect.ValueOf(t.Limits).Elem(), reflect.ValueOf(c.Trunk.Limits).Elem())
	}
	fillDefaults(reflect.ValueOf(t).Elem(), reflect.ValueOf(&c.Trunk).Elem())
}

// FillEmpty is like Fill, but also sets the keys that t leaves empty.
func (c Carrier) FillEmpty(t *Trunk) {
	clearEmpty(reflect.ValueOf(t).Elem())
	if t.Limits != nil {
		clearEmpty(reflect.ValueOf(t.Limits).Elem())
	}
	t.Carrier = &c.Name
	c.Fill(t)
}

// clearEmpty sets the fields to nil that point to a zero value, or to an empty list or map.
func clearEmpty(v reflect.Value) {
	for _, f := range v.Fields() {
		if f.Kind() != reflect.Pointer || f.IsNil() {
			continue
		}
		e := f.Elem()
		if isList := e.Kind() == reflect.Slice || e.Kind() == reflect.Map; e.IsZero() || isList && e.Len() == 0 {
			f.SetZero()
		}
	}
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
			if code.matches(status, reason) {
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

package config

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"strings"

	"github.com/parley-voice/parley/control/operator"
)

// withIdentity adds the settings for the sign-in of operators.
func withIdentity(all map[string]Setting) map[string]Setting {
	maps.Copy(all, map[string]Setting{
		"PARLEY_PASSWORDS": {"on or off", func(c *Config, v string) error {
			return setSwitch(func(c *Config) *bool { return &c.Identity.Only })(c, not(v))
		}},
		"PARLEY_SECOND_FACTOR": {"optional or required", func(c *Config, v string) error {
			c.RequireCodes = v == "required"
			return oneOf(func(*Config) *string { return new(string) }, "optional", "required")(c, v)
		}},
		"PARLEY_OIDC_ISSUER":    {"an https URL, or an http URL of this machine", setIssuer},
		"PARLEY_OIDC_CLIENT_ID": {"a text", func(c *Config, v string) error { c.Identity.ClientID = v; return nil }},
		"PARLEY_OIDC_SCOPES": {"scopes, comma-separated, one of them openid", func(c *Config, v string) (err error) {
			c.Identity.Scopes, err = hosts(v, " ")
			if err == nil && !strings.Contains(","+strings.Join(c.Identity.Scopes, ",")+",", ",openid,") {
				err = errors.New("openid is missing")
			}
			return err
		}},
		"PARLEY_OIDC_CLAIM": {"the name of a claim", func(c *Config, v string) error { c.Identity.Claim = v; return nil }},
		"PARLEY_OIDC_DOMAINS": {"domains, comma-separated", func(c *Config, v string) (err error) {
			c.Identity.Domains, err = hosts(strings.ToLower(v), "/@: *")
			return err
		}},
		"PARLEY_OIDC_ROLES": {"CLAIM:VALUE=ORGANIZATION/ROLE, comma-separated", func(c *Config, v string) (err error) {
			c.Identity.Rules, err = operator.ParseRules(v)
			return err
		}},
	})
	return all
}

// not turns on into off and off into on.
func not(v string) string {
	switch v {
	case "on":
		return "off"
	case "off":
		return "on"
	default:
		return v
	}
}

func setIssuer(c *Config, v string) error {
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("not such a URL")
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	if local := ip.IsLoopback() || u.Hostname() == "localhost"; u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return fmt.Errorf("scheme %q is not secure", u.Scheme)
	}
	c.Identity.Issuer = v
	return nil
}

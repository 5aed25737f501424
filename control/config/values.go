package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/secretbox"
	"github.com/parley-voice/parley/media"
)

// withStorage adds the settings for the node's name, a full disk and an unavailable database.
func withStorage(all map[string]Setting) map[string]Setting {
	all["PARLEY_RECORDING_RESERVE"] = Setting{"a size, 1MB to 1000GB, or off", setSize(func(c *Config) *int64 { return &c.RecordingReserve })}
	all["PARLEY_RECORDING_FORMAT"] = Setting{"wav or opus", oneOf(func(c *Config) *string { return &c.RecordingFormat }, "wav", "opus")}
	segment := duration("", func(c *Config) *time.Duration { return &c.RecordingSegment }, 5*time.Second, recording.MaxSegment)
	all["PARLEY_RECORDING_SEGMENT"] = Setting{"a duration, 5s to 30s, or off", func(c *Config, v string) error {
		if v == "off" {
			c.RecordingSegment = 0
			return nil
		}
		return segment.Set(c, v)
	}}
	all["PARLEY_RECORDING_TAKEOVER"] = duration("a duration, 1s to 10m",
		func(c *Config) *time.Duration { return &c.RecordingTakeover }, time.Second, control.HomeTimeout)
	all["PARLEY_DATABASE_WAIT"] = duration("a duration, 0s to 1h", func(c *Config) *time.Duration { return &c.DatabaseWait }, 0, time.Hour)
	all["PARLEY_NODE_NAME"] = Setting{"letters, digits, dots and hyphens, at most 253", setNodeName}
	return all
}

func addr(at func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		_, port, err := net.SplitHostPort(v)
		if err != nil {
			return fmt.Errorf("%q is not an address", v)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("port %q is not 0 to 65535 (%d)", port, n)
		}
		*at(c) = v
		return nil
	}
}

func number(at func(*Config) *int, most int) func(*Config, string) error {
	return numberFrom(1, most, at)
}

func numberFrom(least, most int, at func(*Config) *int) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is out of range", v)
		}
		*at(c) = n
		return nil
	}
}

// duration returns a setting that accepts durations from least to most.
func duration(accepts string, at func(*Config) *time.Duration, least, most time.Duration) Setting {
	return Setting{accepts, func(c *Config, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least || d > most {
			return fmt.Errorf("%q is out of range", v)
		}
		*at(c) = d
		return nil
	}}
}

// setSize parses a size in MB (2^20 bytes) or GB (2^30 bytes).
func setSize(at func(*Config) *int64) func(*Config, string) error {
	return func(c *Config, v string) error {
		if v == "off" {
			*at(c) = -1
			return nil
		}
		text, shift := strings.TrimSuffix(v, "MB"), 20
		if text == v {
			text, shift = strings.TrimSuffix(v, "GB"), 30
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || text == v || n < 1 || n > 1000<<30>>shift {
			return fmt.Errorf("%q is not a size or is out of range", v)
		}
		*at(c) = n << shift
		return nil
	}
}

func setURL(at func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		u, err := url.Parse(v)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) {
			return errors.New("not a URL of that kind")
		}
		*at(c) = v
		return nil
	}
}

func setBucket(c *Config, v string) error {
	c.BucketURL = v
	return recording.CheckURL(v)
}

func setDatabase(at func(*Config) *media.Secret) func(*Config, string) error {
	return func(c *Config, v string) error {
		if !strings.HasPrefix(v, "postgres://") && !strings.HasPrefix(v, "postgresql://") && !strings.Contains(v, "=") {
			return errors.New("not a Postgres connection string") // omits the value, which contains a password
		}
		*at(c) = media.Secret(v)
		return nil
	}
}

func setPorts(at func(*Config) *[2]int) func(*Config, string) error {
	return func(c *Config, v string) error {
		from, to, ok := strings.Cut(v, "-")
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if !ok || err1 != nil || err2 != nil || first < 1024 || last > 65535 || last-first < 3 {
			return fmt.Errorf("%q is not a range of ports", v)
		}
		*at(c) = [2]int{first, last}
		return nil
	}
}

func setPort(at func(*Config) *int) func(*Config, string) error {
	return func(c *Config, v string) error {
		if v == "off" {
			*at(c) = Off
			return nil
		}
		n, err := strconv.ParseUint(v, 10, 16)
		if err != nil {
			return fmt.Errorf("%q is not a port", v)
		}
		*at(c) = int(n)
		return nil
	}
}

func setICE(at func(*Config) *[]string, schemes ...string) func(*Config, string) error {
	return func(c *Config, v string) error {
		*at(c) = nil
		for part := range strings.SplitSeq(v, ",") {
			part = strings.TrimSpace(part)
			if !slices.ContainsFunc(schemes, func(s string) bool { return strings.HasPrefix(part, s) && len(part) > len(s) }) {
				return fmt.Errorf("%q is not a server URL of that kind", part)
			}
			*at(c) = append(*at(c), part)
		}
		return nil
	}
}

func setIP(c *Config, v string) error {
	ip, err := netip.ParseAddr(v)
	if err != nil || ip.IsUnspecified() {
		return fmt.Errorf("%q is not an address that carriers can reach", v)
	}
	c.MediaIP = ip
	return nil
}

func setBool(at func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%q", v)
		}
		*at(c) = b
		return nil
	}
}

func setSwitch(at func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) error {
		if v != "on" && v != "off" {
			return fmt.Errorf("%q", v)
		}
		*at(c) = v == "on"
		return nil
	}
}

func setRate(c *Config, v string) error {
	if v == "off" {
		c.RateLimit = 0
		return nil
	}
	return number(func(c *Config) *int { return &c.RateLimit }, 1_000_000)(c, v)
}

func setLimits(c *Config, v string) error {
	c.ProviderLimits = map[string]int{}
	for part := range strings.SplitSeq(v, ",") {
		name, most, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(most)
		if name == "" || err != nil || n < 1 || n > 100_000 {
			return fmt.Errorf("%q is not a limit", part)
		}
		c.ProviderLimits[name] = n
	}
	return nil
}

func setToolHosts(c *Config, v string) (err error) {
	c.ToolHosts, err = hosts(v, "/@ ")
	return err
}

func setHosts(c *Config, v string) (err error) {
	c.Hosts, err = hosts(v, "/@: *")
	return err
}

// hosts splits a comma-separated list of hosts. It rejects a host that contains a character of not.
func hosts(v, not string) (all []string, err error) {
	for name := range strings.SplitSeq(v, ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.ContainsAny(name, not) {
			return nil, fmt.Errorf("%q is not a host", name)
		}
		all = append(all, name)
	}
	return all, nil
}

func setNodeName(c *Config, v string) error {
	if len(v) > 253 || strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != "" {
		return fmt.Errorf("%q", v)
	}
	c.NodeName = v
	return nil
}

// oneOf accepts some words.
func oneOf(at func(*Config) *string, words ...string) func(*Config, string) error {
	return func(c *Config, v string) error {
		if !slices.Contains(words, v) {
			return fmt.Errorf("%q", v)
		}
		*at(c) = v
		return nil
	}
}

// setSealKey parses the keys that encrypt secrets.
func setSealKey(c *Config, v string) error {
	if _, err := secretbox.Parse(media.Secret(v)); err != nil {
		return err
	}
	c.SealKey = media.Secret(v)
	return nil
}

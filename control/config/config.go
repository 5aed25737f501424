// Package config reads settings from environment variables and from a file with the same keys.
package config

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/control/circuitbreaker"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/recording/s3"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// A Config is the settings of a process. docs/configuration.md explains each.
type Config struct {
	HTTPAddr    string
	PublicURL   string
	Proxies     []netip.Prefix // trusted proxies, whose X-Forwarded-For is used
	MetricsAddr string
	Hosts       []string // accepted Host names, in addition to that of PublicURL
	Pprof       bool     // profiles on MetricsAddr
	DataDir     string
	BucketURL   string // empty: a folder of DataDir
	S3          s3.Account
	DatabaseURL media.Secret
	SealKey     media.Secret
	// DatabaseWait bounds the wait for the database at the start of a server.
	DatabaseWait time.Duration
	SIPAddr      string
	SIPTLS       TLSFiles
	Stir         Stir
	RTPPorts     [2]int
	MediaIP      netip.Addr
	WebRTC       WebRTC
	Talk         []TalkAgent // agents on /talk; without any the page is off
	Dashboard    bool

	AllowInsecureWebhooks bool
	ToolHosts             []string // private or plain-http hosts that tools may use

	RateLimit           int // 0: off
	RootOrg             string
	DialQueueDepth      int
	SubgroupConcurrency int
	SubgroupRate        int
	CampaignRows        int // most rows of a new campaign
	BatchRows           int
	WithdrawAddresses   int
	OpenHorizon         time.Duration        // latest end of campaigns to which calls can be added
	Breaker             circuitbreaker.Rules // for the routes of campaigns
	IdleAfter           time.Duration        // time after which a campaign that could dial but does not is reported
	Lease               time.Duration
	DrainTimeout        time.Duration
	RecordingReserve    int64 // free bytes required to record a call; less than 0: none
	LogLevel            string
	TurnLogs            string // a folder; empty: no logs
	ClassifierURL       string // end-of-turn classifier; empty: none
	ClassifierKey       media.Secret
	AMDModel            bool // the model may decide who answered

	// APIURL and APIKey are the server and the key that commands use.
	APIURL string
	APIKey media.Secret

	Endpoints      endpoints.Set
	ProviderLimits map[string]int // concurrent uses, by provider
}

// A WebRTC is the settings of web calls.
type WebRTC struct {
	UDP, TCP   int      // ports; 0: any free port, Off: none
	STUN, TURN []string // URLs
	TURNSecret media.Secret

	// Relay is the port of the built-in TURN server, RelayPorts the range of its relays, RelayPeers the media addresses of
	// other nodes.
	Relay      int
	RelayPorts [2]int
	RelayPeers []netip.AddrPort
}

// A TalkAgent is an agent that visitors of /talk can call.
type TalkAgent struct{ Org, Name string }

// Off is a port that is not opened.
const Off = -1

// A Stir is the files and the URL for signing calls (RFC 8224).
type Stir struct {
	Key, Cert, X5U string
}

// A TLSFiles is the address of SIP over TLS and its PEM files.
type TLSFiles struct {
	Addr, Cert, Key, CA string
}

// Default returns the default settings.
func Default() Config {
	return Config{
		HTTPAddr: "127.0.0.1:8080", MetricsAddr: "127.0.0.1:9464", Pprof: true, DataDir: "./.parley",
		SIPAddr: "127.0.0.1:5060", RTPPorts: [2]int{20000, 29999},
		WebRTC:    WebRTC{UDP: 30000, TCP: Off, Relay: Off, RelayPorts: [2]int{31000, 31999}},
		RateLimit: 60, RootOrg: "root", DialQueueDepth: 1000, SubgroupConcurrency: 10, SubgroupRate: 30,
		CampaignRows: 50_000, BatchRows: 1000, WithdrawAddresses: 1000, OpenHorizon: 30 * 24 * time.Hour,
		Breaker: circuitbreaker.DefaultRules(), IdleAfter: 5 * time.Minute, Dashboard: true,
		RecordingReserve: recording.DefaultMinFree, DatabaseWait: time.Minute,
		Lease: 15 * time.Second, DrainTimeout: 30 * time.Minute, LogLevel: "info",
	}
}

// A Setting parses one value into a Config.
type Setting struct {
	Accepts string
	Set     func(c *Config, v string) error
}

// Settings returns all settings by key.
func Settings() map[string]Setting {
	text := func(at func(*Config) *string) func(*Config, string) error {
		return func(c *Config, v string) error { *at(c) = v; return nil }
	}
	return withSecrets(withWeb(withStorage(map[string]Setting{
		"PARLEY_HTTP_ADDR":               {"host:port", addr(func(c *Config) *string { return &c.HTTPAddr })},
		"PARLEY_PUBLIC_URL":              {"an http or https URL", setURL(func(c *Config) *string { return &c.PublicURL })},
		"PARLEY_METRICS_ADDR":            {"host:port", addr(func(c *Config) *string { return &c.MetricsAddr })},
		"PARLEY_HOSTS":                   {"host names, comma-separated", setHosts},
		"PARLEY_PPROF":                   {"true or false", setBool(func(c *Config) *bool { return &c.Pprof })},
		"PARLEY_DATA_DIR":                {"a folder", text(func(c *Config) *string { return &c.DataDir })},
		"PARLEY_BUCKET_URL":              {"a folder, file:///FOLDER, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME", setBucket},
		"PARLEY_S3_ID":                   {"an access key's id", text(func(c *Config) *string { return &c.S3.ID })},
		"PARLEY_SIP_ADDR":                {"host:port", addr(func(c *Config) *string { return &c.SIPAddr })},
		"PARLEY_SIP_TLS_ADDR":            {"host:port", addr(func(c *Config) *string { return &c.SIPTLS.Addr })},
		"PARLEY_SIP_TLS_CERT":            {"a PEM file", text(func(c *Config) *string { return &c.SIPTLS.Cert })},
		"PARLEY_SIP_TLS_KEY":             {"a PEM file", text(func(c *Config) *string { return &c.SIPTLS.Key })},
		"PARLEY_SIP_TLS_CA":              {"a PEM file", text(func(c *Config) *string { return &c.SIPTLS.CA })},
		"PARLEY_STIR_KEY":                {"a PEM file", text(func(c *Config) *string { return &c.Stir.Key })},
		"PARLEY_STIR_CERT":               {"a PEM file", text(func(c *Config) *string { return &c.Stir.Cert })},
		"PARLEY_STIR_X5U":                {"an https URL", text(func(c *Config) *string { return &c.Stir.X5U })},
		"PARLEY_RTP_PORTS":               {"FIRST-LAST, within 1024-65535", setPorts(func(c *Config) *[2]int { return &c.RTPPorts })},
		"PARLEY_MEDIA_IP":                {"an IP address", setIP},
		"PARLEY_ALLOW_INSECURE_WEBHOOKS": {"true or false", setBool(func(c *Config) *bool { return &c.AllowInsecureWebhooks })},
		"PARLEY_TOOL_HOSTS":              {"HOST or HOST:PORT, comma-separated", setToolHosts},
		"PARLEY_RATE_LIMIT":              {"requests a minute, 1 or more, or off", setRate},
		"PARLEY_ROOT_ORGANIZATION":       {"a name", text(func(c *Config) *string { return &c.RootOrg })},
		"PARLEY_DIAL_QUEUE_DEPTH":        {"calls, 1 to 1000000", number(func(c *Config) *int { return &c.DialQueueDepth }, 1_000_000)},
		"PARLEY_SUBGROUP_CONCURRENCY":    {"calls, 1 to 100000", number(func(c *Config) *int { return &c.SubgroupConcurrency }, 100_000)},
		"PARLEY_SUBGROUP_RATE":           {"calls a minute, 1 to 100000", number(func(c *Config) *int { return &c.SubgroupRate }, 100_000)},
		"PARLEY_CAMPAIGN_ROWS":           {"rows, 1 to 200000", number(func(c *Config) *int { return &c.CampaignRows }, 200_000)},
		"PARLEY_BATCH_ROWS":              {"rows, 1 to 50000", number(func(c *Config) *int { return &c.BatchRows }, 50_000)},
		"PARLEY_WITHDRAW_ADDRESSES":      {"addresses, 1 to 100000", number(func(c *Config) *int { return &c.WithdrawAddresses }, 100_000)},
		"PARLEY_OPEN_HORIZON": duration("a duration, 1h to 8760h",
			func(c *Config) *time.Duration { return &c.OpenHorizon }, time.Hour, 8760*time.Hour),
		"PARLEY_ROUTE_FAILURES": {"percent, 1 to 100", number(func(c *Config) *int { return &c.Breaker.Share }, 100)},
		"PARLEY_ROUTE_LEAST":    {"calls, 1 to 40", number(func(c *Config) *int { return &c.Breaker.MinCalls }, 40)},
		"PARLEY_ROUTE_WINDOW": duration("a duration, 10s to 1h",
			func(c *Config) *time.Duration { return &c.Breaker.Window }, 10*time.Second, time.Hour),
		"PARLEY_ROUTE_RETRY": duration("a duration, 1s to 10m",
			func(c *Config) *time.Duration { return &c.Breaker.First }, time.Second, 10*time.Minute),
		"PARLEY_ROUTE_RETRY_MAX": duration("a duration, 1s to 1h",
			func(c *Config) *time.Duration { return &c.Breaker.Longest }, time.Second, time.Hour),
		"PARLEY_CAMPAIGN_IDLE": duration("a duration, 1m to 24h",
			func(c *Config) *time.Duration { return &c.IdleAfter }, time.Minute, 24*time.Hour),
		"PARLEY_LEASE": duration("a duration, 1s to 5m",
			func(c *Config) *time.Duration { return &c.Lease }, time.Second, 5*time.Minute),
		"PARLEY_DRAIN_TIMEOUT": duration("a duration, 0s to 24h",
			func(c *Config) *time.Duration { return &c.DrainTimeout }, 0, 24*time.Hour),
		"PARLEY_LOG_LEVEL": {"debug, info, warn or error", setLevel},

		"PARLEY_DEEPGRAM_URL":    endpointURL("deepgram", "a ws or wss URL"),
		"PARLEY_OPENAI_URL":      endpointURL("openai", "an http or https URL"),
		"PARLEY_ELEVENLABS_URL":  endpointURL("elevenlabs", "a ws or wss URL"),
		"PARLEY_CARTESIA_URL":    endpointURL("cartesia", "a ws or wss URL"),
		"PARLEY_ASSEMBLYAI_URL":  endpointURL("assemblyai", "a ws or wss URL"),
		"PARLEY_CLASSIFIER_URL":  {"an http or https URL", setURL(func(c *Config) *string { return &c.ClassifierURL })},
		"PARLEY_AMD_MODEL":       {"true or false", setBool(func(c *Config) *bool { return &c.AMDModel })},
		"PARLEY_API_URL":         {"an http or https URL", setURL(func(c *Config) *string { return &c.APIURL })},
		"PARLEY_TURN_LOGS":       {"a folder", text(func(c *Config) *string { return &c.TurnLogs })},
		"PARLEY_FAKE_URL":        {"host:port of fake providers; empty starts them", text(func(c *Config) *string { return &c.Endpoints.Fake })},
		"PARLEY_PROVIDER_LIMITS": {"NAME=N,NAME=N, each N 1 to 100000", setLimits},
	})))
}

// Load reads file, if not empty, and the environment, which wins. Its error names every invalid key and what it accepts.
func Load(file string, environ []string) (Config, error) {
	c, known := Default(), Settings()
	var errs []error
	if file != "" {
		values, err := readFile(file)
		if err != nil {
			return c, err
		}
		errs = append(errs, assign(&c, known, values, file)...)
	}
	values := map[string]string{}
	for _, e := range environ {
		if k, v, _ := strings.Cut(e, "="); strings.HasPrefix(k, "PARLEY_") && v != "" {
			values[k] = v
		}
	}
	errs = append(errs, assign(&c, known, values, "environment")...)
	if errors.Join(errs...) == nil { // else an endpoint may be incomplete for that reason
		errs = append(errs, c.finishEndpoints())
	}
	if err := errors.Join(errs...); err != nil {
		return c, err
	}
	return c, nil
}

func assign(c *Config, known map[string]Setting, values map[string]string, where string) []error {
	errs := []error{checkExclusive(values, where)}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		s, ok := known[k]
		if !ok {
			s, ok = endpointSetting(k)
		}
		if !ok {
			errs = append(errs, fmt.Errorf("%s: unknown key %s; %s", where, k, suggestion(k, known)))
			continue
		}
		if err := s.Set(c, values[k]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w; accepted: %s", where, k, err, s.Accepts))
		}
	}
	return errs
}

// readFile reads KEY=VALUE lines. Empty lines and lines that start with # are skipped; a value may be in double quotes.
func readFile(file string) (map[string]string, error) {
	f, err := os.Open(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values := map[string]string{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s:%d: want KEY=VALUE", file, n)
		}
		v = strings.TrimSpace(v)
		if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
			v = v[1 : len(v)-1]
		}
		values[strings.TrimSpace(k)] = v
	}
	return values, lines.Err()
}

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

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/circuitbreaker"
	"github.com/parley-voice/parley/control/identity"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/recording/s3"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// Config holds the settings of a process. docs/configuration.md explains each setting.
type Config struct {
	HTTPAddr    string
	HTTPTLS     HTTPTLS
	PublicURL   string
	Proxies     []netip.Prefix // proxies whose X-Forwarded-For header is trusted
	MetricsAddr string
	Hosts       []string // accepted Host names besides the host of PublicURL
	Pprof       bool     // serve Go profiles on MetricsAddr
	NodeName    string   // empty: the host name
	DataDir     string
	BucketURL   string // address of the recording bucket; empty: a folder of DataDir
	S3          s3.Account
	DatabaseURL media.Secret
	// DatabaseDirectURL leads to the same database without a pooler; empty: none.
	DatabaseDirectURL media.Secret
	SealKey           media.Secret
	DatabaseConns     int // maximum number of connections to the database
	// DatabaseWait bounds how long a starting server waits for the database.
	DatabaseWait time.Duration
	SIPAddr      string
	SIPTLS       TLSFiles
	Stir         Stir
	RTPPorts     [2]int
	MediaIP      netip.Addr
	WebRTC       WebRTC
	Talk         []TalkAgent // agents that /talk offers; empty: /talk is off
	TalkNotice   string      // text above the controls of /talk; set by the demo only
	TalkTyped    bool        // visitors of /talk type, because the agents recognize no speech; set by the demo only
	Dashboard    bool
	Identity     identity.Settings // sign-in with an OpenID Connect provider
	RequireCodes bool              // operators who sign in with a password must use one-time codes

	AllowInsecureWebhooks bool
	ToolHosts             []string // private and plain-http hosts that agents' tools may call

	RateLimit           int // requests per minute of one API key; 0 disables the limit
	RootOrg             string
	MaxCalls            int  // maximum number of calls that this node runs
	LimitLoad           bool // calls wait while this node is overloaded
	DialQueueDepth      int
	SubgroupConcurrency int
	SubgroupRate        int
	CampaignRows        int // maximum rows of a new campaign
	BatchRows           int
	WithdrawAddresses   int
	OpenHorizon         time.Duration        // latest end of a campaign that accepts further calls
	Breaker             circuitbreaker.Rules // circuit breaker of campaigns' subgroups
	IdleAfter           time.Duration        // report a campaign that may dial but starts no call for this long
	Lease               time.Duration
	DrainTimeout        time.Duration
	RecordingFormat     string        // wav or opus
	RecordingSegment    time.Duration // duration of the segments of recordings in a shared bucket; 0: none
	RecordingTakeover   time.Duration // time without a sign of life after which other nodes store a node's recordings
	RecordingReserve    int64         // free bytes that recording a call requires; less than 0: no check
	LogLevel            string
	LogFormat           string // text or json
	TurnLogs            string // folder of the turn logs; empty: no logs
	ClassifierURL       string // URL of the end-of-turn classifier; empty: none
	ClassifierKey       media.Secret
	AMDModel            bool // the model may decide whether a person or a machine answered
	Traces              Traces

	// APIURL and APIKey are the server address and the API key that commands use.
	APIURL string
	APIKey media.Secret

	Endpoints      endpoints.Set
	ProviderLimits map[string]int // maximum concurrent uses of each provider
	PricesFile     string         // price file in YAML; empty: only the built-in prices

	// Placeholders lists the settings whose value still contains control.Placeholder.
	Placeholders []string
}

// WebRTC holds the settings of web calls.
type WebRTC struct {
	UDP, TCP   int      // media ports; 0: any free port; Off: none
	STUN, TURN []string // server URLs
	TURNSecret media.Secret

	// Relay is the port of the built-in TURN server. RelayPorts is the port range of its relays. RelayPeers are
	// the media addresses of other nodes.
	Relay      int
	RelayPorts [2]int
	RelayPeers []netip.AddrPort
}

// TalkAgent is an agent that visitors of /talk can call.
type TalkAgent struct{ Org, Name string }

// Off as a port number means that the port is not opened.
const Off = -1

// Stir names the files and the certificate URL for signing calls (RFC 8224).
type Stir struct {
	Key, Cert, X5U string
}

// HTTPTLS defines how the API is served over HTTPS: with the PEM files Cert and Key, or with certificates from an ACME
// CA. The zero value serves plain HTTP.
type HTTPTLS struct {
	Cert, Key string
	ACME      bool
	Email     string // contact address for the CA; may be empty
	Directory string // URL of the CA's ACME directory; empty: Let's Encrypt
	Redirect  string // address of a plain HTTP listener that redirects to PublicURL; empty: none
}

// TLSFiles holds the address for SIP over TLS and the names of its PEM files.
type TLSFiles struct {
	Addr, Cert, Key, CA string
}

// Default returns the settings that apply without a settings file and environment.
func Default() Config {
	return Config{
		HTTPAddr: "127.0.0.1:8080", MetricsAddr: "127.0.0.1:9464", Pprof: true, DataDir: "./.parley",
		SIPAddr: "127.0.0.1:5060", RTPPorts: [2]int{20000, 29999},
		WebRTC:    WebRTC{UDP: 30000, TCP: Off, Relay: Off, RelayPorts: [2]int{31000, 31999}},
		RateLimit: 60, RootOrg: "root", MaxCalls: 1000, LimitLoad: true, DialQueueDepth: 1000, SubgroupConcurrency: 10, SubgroupRate: 30,
		CampaignRows: 50_000, BatchRows: 1000, WithdrawAddresses: 1000, OpenHorizon: 30 * 24 * time.Hour,
		Breaker: circuitbreaker.DefaultRules(), IdleAfter: 5 * time.Minute, Dashboard: true,
		RecordingReserve: recording.DefaultMinFree, RecordingFormat: "wav", RecordingSegment: 25 * time.Second, RecordingTakeover: time.Minute,
		DatabaseWait: time.Minute, DatabaseConns: 12,
		Lease: 15 * time.Second, DrainTimeout: 30 * time.Minute, LogLevel: "info", LogFormat: "text", Traces: Traces{Sample: 1},
	}
}

// Setting parses one value into a Config.
type Setting struct {
	Accepts string
	Set     func(c *Config, v string) error
}

// Settings returns all settings by key.
func Settings() map[string]Setting {
	text := func(at func(*Config) *string) func(*Config, string) error {
		return func(c *Config, v string) error { *at(c) = v; return nil }
	}
	return withSecrets(withIdentity(withTraces(withNodeLimits(withHTTPS(withWeb(withStorage(map[string]Setting{
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
		"PARLEY_LOG_LEVEL": {
			"debug, info, warn or error",
			oneOf(func(c *Config) *string { return &c.LogLevel }, "debug", "info", "warn", "error"),
		},
		"PARLEY_LOG_FORMAT": {"text or json", oneOf(func(c *Config) *string { return &c.LogFormat }, "text", "json")},

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
		"PARLEY_PRICES_FILE":     {"a YAML file of prices", text(func(c *Config) *string { return &c.PricesFile })},
		"PARLEY_PROVIDER_LIMITS": {"NAME=N,NAME=N, each N 1 to 100000", setLimits},
	})))))))
}

// withNodeLimits adds the settings that limit the calls and the database connections of this node.
func withNodeLimits(all map[string]Setting) map[string]Setting {
	conns := func(c *Config) *int { return &c.DatabaseConns }
	all["PARLEY_DATABASE_CONNECTIONS"] = Setting{"connections, 4 to 1000", numberFrom(4, 1000, conns)}
	all["PARLEY_MAX_CALLS"] = Setting{"calls, 1 to 10000", number(func(c *Config) *int { return &c.MaxCalls }, 10_000)}
	all["PARLEY_LIMIT_LOAD"] = Setting{"true or false", setBool(func(c *Config) *bool { return &c.LimitLoad })}
	return all
}

// Load reads the settings file, if file is not empty, and the environment. The environment overrides the file.
// The error names every invalid key and the accepted values.
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
	if errors.Join(errs...) == nil { // an earlier error may have left an endpoint incomplete
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
		c.notePlaceholder(k, values[k])
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

// notePlaceholder updates c.Placeholders for the setting key, or for the setting that the file KEY_FILE sets.
func (c *Config) notePlaceholder(key, value string) {
	set := strings.TrimSuffix(key, "_FILE")
	c.Placeholders = slices.DeleteFunc(c.Placeholders, func(other string) bool { return other == set })
	if control.HasPlaceholder(value) {
		c.Placeholders = append(c.Placeholders, set)
	}
}

// readFile reads KEY=VALUE lines. It skips empty lines and lines that start with #. A value may be in double
// quotes.
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

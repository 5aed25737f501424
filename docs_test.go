package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/parley-voice/parley/api/docs"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/retention"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tools"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStatesAreDocumented compares the diagrams of docs/states.md with the code.
func TestStatesAreDocumented(t *testing.T) {
	doc := read(t, "docs/states.md")
	drawn := map[[2]string]bool{}
	for _, edge := range regexp.MustCompile(`(?m)^    (\w+) --> (\w+)`).FindAllStringSubmatch(doc, -1) {
		drawn[[2]string{edge[1], edge[2]}] = true
	}
	all := []control.AttemptState{
		control.Scheduled, control.Claimed, control.Intent, control.Sent, control.Rang, control.Answered, control.Closed, control.Unknown,
	}
	for _, from := range all {
		for _, to := range all {
			if edge := [2]string{string(from), string(to)}; drawn[edge] != control.CanMove(from, to) {
				t.Errorf("%v: drawn %v, possible %v", edge, drawn[edge], control.CanMove(from, to))
			}
		}
	}
	effects := map[string]campaigns.Effect{
		"–": campaigns.Impossible, "no change": campaigns.NoChange, "if the launch checks pass": campaigns.IfChecksPass, "applies": campaigns.Applies,
	}
	for _, s := range []campaigns.Status{
		campaigns.Draft, campaigns.Scheduled, campaigns.Running, campaigns.Paused, campaigns.Completed, campaigns.Canceled,
	} {
		row := regexp.MustCompile("(?m)^\\| `" + string(s) + "` \\| (.*) \\|$").FindStringSubmatch(doc)
		if row == nil {
			t.Errorf("docs/states.md has no row %s", s)
			continue
		}
		for i, text := range strings.Split(row[1], " | ") {
			action := []campaigns.Action{campaigns.Launch, campaigns.Pause, campaigns.Resume, campaigns.Cancel, campaigns.AddCalls}[i]
			if effect, known := effects[text]; !known || effect != campaigns.EffectOf(s, action) {
				t.Errorf("docs/states.md: %s, column %d says %q, the effect is %d", s, i+1, text, campaigns.EffectOf(s, action))
			}
		}
	}
}

// TestSettingsAreDocumented checks that docs/configuration.md explains every setting and nothing else.
func TestSettingsAreDocumented(t *testing.T) {
	doc := read(t, "docs/configuration.md")
	for key := range config.Settings() {
		if !strings.Contains(doc, "`"+key+"`") {
			t.Errorf("docs/configuration.md does not explain %s", key)
		}
	}
	for _, key := range regexp.MustCompile("`(PARLEY_[A-Z_]+)`").FindAllStringSubmatch(doc, -1) {
		if _, ok := config.Settings()[key[1]]; !ok && key[1] != "PARLEY_PROVIDER_NAME_KIND" { // settings that docs/providers.md explains
			t.Errorf("docs/configuration.md explains %s, which is not a setting", key[1])
		}
	}
}

// TestOrganizationsAreDocumented checks that docs/configuration.md explains every key of an organization.
func TestOrganizationsAreDocumented(t *testing.T) {
	_, doc, ok := strings.Cut(read(t, "docs/configuration.md"), "### Organizations")
	if doc, _, _ = strings.Cut(doc, "\n### "); !ok {
		t.Fatal("docs/configuration.md has no part about organizations")
	}
	keys := []string{}
	for _, of := range []reflect.Type{reflect.TypeFor[apply.Organization](), reflect.TypeFor[apply.Window](), reflect.TypeFor[apply.Caps](), reflect.TypeFor[apply.Disclosures](), reflect.TypeFor[apply.OrgLimits](), reflect.TypeFor[retention.Rules]()} {
		for f := range of.Fields() {
			keys = append(keys, f.Tag.Get("yaml"))
		}
	}
	for _, key := range keys {
		if !regexp.MustCompile("(?m)^\\|.*`" + key + "\\b").MatchString(doc) {
			t.Errorf("docs/configuration.md does not explain %s of an organization", key)
		}
	}
}

// TestTrunksAreDocumented checks that docs/configuration.md explains every key of a trunk.
func TestTrunksAreDocumented(t *testing.T) {
	_, doc, ok := strings.Cut(read(t, "docs/configuration.md"), "### Trunks")
	if !ok {
		t.Fatal("docs/configuration.md has no part about trunks")
	}
	for f := range reflect.TypeFor[apply.Trunk]().Fields() {
		key := f.Tag.Get("yaml")
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + key + "`").MatchString(doc) {
			t.Errorf("docs/configuration.md does not explain %s of a trunk", key)
		}
	}
}

// TestAgentsAreDocumented checks that docs/agents.md explains every tool, and every key of tools, limits and analysis.
func TestAgentsAreDocumented(t *testing.T) {
	doc := read(t, "docs/agents.md")
	keys := []string{tools.EndCall, tools.TransferCall, tools.SendDTMF, tools.LeaveVoicemail, tools.HTTP}
	for _, of := range []reflect.Type{reflect.TypeFor[apply.Tool](), reflect.TypeFor[pipeline.Limits](), reflect.TypeFor[apply.Analysis](), reflect.TypeFor[agents.Field]()} {
		for f := range of.Fields() {
			keys = append(keys, f.Tag.Get("yaml"))
		}
	}
	for _, key := range keys {
		if key != "type" && !strings.Contains(doc, "`"+key) {
			t.Errorf("docs/agents.md does not explain %s", key)
		}
	}
}

func TestExampleParses(t *testing.T) {
	if _, err := apply.Parse(strings.NewReader(read(t, "docs/example.yaml"))); err != nil {
		t.Error(err)
	}
}

func TestReadme(t *testing.T) {
	text := read(t, "README.md")
	if n := strings.Count(text, "\n"); n > 80 {
		t.Errorf("README.md has %d lines, 80 are enough", n)
	}
	for _, link := range regexp.MustCompile(`\]\(([a-z/._]+)\)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(link[1]); err != nil {
			t.Error(err)
		}
	}
}

// TestCommandsAreDocumented checks that docs/configuration.md lists every command of the binary.
func TestCommandsAreDocumented(t *testing.T) {
	doc := read(t, "docs/configuration.md")
	walkCommands(model(t), "", func(n *kong.Node, path string) {
		if len(n.Children) > 0 || strings.HasPrefix(path, "bench ") {
			return
		}
		if !strings.Contains(doc, "parley "+path) {
			t.Errorf("docs/configuration.md does not show parley %s", path)
		}
	})
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		want    []string
	}{
		"invalid port":                 {[]string{"PARLEY_HTTP_ADDR=localhost:x"}, []string{"PARLEY_HTTP_ADDR", "accepted: host:port"}},
		"invalid range":                {[]string{"PARLEY_RTP_PORTS=20000"}, []string{"PARLEY_RTP_PORTS", "FIRST-LAST"}},
		"rate of zero":                 {[]string{"PARLEY_RATE_LIMIT=0"}, []string{"PARLEY_RATE_LIMIT", "or off"}},
		"unknown key":                  {[]string{"PARLEY_RATELIMIT=5"}, []string{"unknown key PARLEY_RATELIMIT", "PARLEY_RATE_LIMIT"}},
		"unsupported bucket":           {[]string{"PARLEY_BUCKET_URL=gs://b"}, []string{"PARLEY_BUCKET_URL", "file:///", "s3://"}},
		"two errors":                   {[]string{"PARLEY_LEASE=1h", "PARLEY_LOG_LEVEL=loud"}, []string{"PARLEY_LEASE", "PARLEY_LOG_LEVEL", "debug, info"}},
		"limit without a number":       {[]string{"PARLEY_PROVIDER_LIMITS=openai=5,deepgram"}, []string{"PARLEY_PROVIDER_LIMITS", "deepgram", "NAME=N"}},
		"invalid peer":                 {[]string{"PARLEY_TURN_PEERS=192.0.2.7:30000,169.254.169.254:80"}, []string{"PARLEY_TURN_PEERS", "169.254", "IP:PORT"}},
		"proxy range of all IPv4":      {[]string{"PARLEY_TRUSTED_PROXIES=::ffff:0.0.0.0/96"}, []string{"PARLEY_TRUSTED_PROXIES", "::ffff:0.0.0.0/96", "ADDRESS/BITS"}},
		"proxy range of all addresses": {[]string{"PARLEY_TRUSTED_PROXIES=10.0.0.1,0.0.0.0/0"}, []string{"PARLEY_TRUSTED_PROXIES", "0.0.0.0/0", "ADDRESS/BITS"}},
		"unspecified media address":    {[]string{"PARLEY_MEDIA_IP=0.0.0.0"}, []string{"PARLEY_MEDIA_IP"}},
	} {
		_, err := config.Load("", c.environ)
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q in it", name, err, w)
			}
		}
	}
	_, err := config.Load("", []string{"PARLEY_DATABASE_URL=mysql://u:canary@h/d"})
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("the error contains the password: %v", err)
	}
	c, err := config.Load("", []string{"PARLEY_RATE_LIMIT=off", "PARLEY_LEASE=3s", "OTHER=1"})
	if err != nil || c.RateLimit != 0 || c.Lease.Seconds() != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = config.Load("", []string{"PARLEY_PROVIDER_LIMITS=openai=5, deepgram=7", "PARLEY_CARTESIA_API_KEY=k"})
	if err != nil || c.ProviderLimits["openai"] != 5 || c.ProviderLimits["deepgram"] != 7 || c.Endpoints.Named["cartesia"].Key != "k" {
		t.Errorf("%v, %v", c.ProviderLimits, err)
	}
}

func TestConfigFile(t *testing.T) {
	file := t.TempDir() + "/parley.env"
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# ours\nPARLEY_DATA_DIR = \"/srv/parley\"\nPARLEY_RATE_LIMIT=90\n")
	c, err := config.Load(file, []string{"PARLEY_RATE_LIMIT=70"})
	if err != nil || c.DataDir != "/srv/parley" || c.RateLimit != 70 {
		t.Errorf("%+v, %v", c, err)
	}
	write("PARLEY_DATADIR=/srv\n")
	if _, err = config.Load(file, nil); err == nil || !strings.Contains(err.Error(), "unknown key PARLEY_DATADIR") || !strings.Contains(err.Error(), "PARLEY_DATA_DIR") {
		t.Errorf("an unknown key: %v", err)
	}
	write("nonsense\n")
	if _, err = config.Load(file, nil); err == nil || !strings.Contains(err.Error(), ":1: want KEY=VALUE") {
		t.Errorf("an invalid line: %v", err)
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{nil, 0},
		{[]string{"version"}, 0},
		{[]string{"--help"}, 0},
		{[]string{"help"}, 0},
		{[]string{"help", "failover", "release"}, 0},
		{[]string{"help", "nonsense"}, 2},
		{[]string{"nonsense"}, 2},
		{[]string{"key", "create"}, 2},
		{[]string{"--config", "/no/such/file", "serve"}, 2},
		{[]string{"apply", "-f", "/no/such/file"}, 2},
		{[]string{"call", "trace"}, 2},
	} {
		var out bytes.Buffer
		if got := run(&env{Context: t.Context(), out: &out, errs: &out, environ: nil}, slices.Clone(c.args)); got != c.want {
			t.Errorf("parley %v exits with %d, want %d: %s", c.args, got, c.want, out.String())
		}
	}
}

// TestDocsNameExistingTests checks that every test that the documentation names exists.
func TestDocsNameExistingTests(t *testing.T) {
	defined := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		for _, f := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(read(t, name), -1) {
			defined[f[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, least := range map[string]int{"docs/reliability.md": 50, "docs/security.md": 4} {
		named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(read(t, page), -1)
		if len(named) < least {
			t.Errorf("%s names %d tests", page, len(named))
		}
		for _, n := range named {
			if !defined[n[1]] {
				t.Errorf("%s names %s, which does not exist", page, n[1])
			}
		}
	}
}

// TestCommandLine checks the output of command lines that are incomplete, invalid, or request JSON.
func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "Usage: parley <command>"},
		{[]string{"version", "--json"}, `"version":"dev"`},
		{[]string{"--version"}, "parley dev go1."},
		{[]string{"--version", "--json"}, `"version":"dev"`},
		{[]string{"call"}, "parley call needs one of the commands place, list, show, hangup, trace, recount; parley help call explains them"},
		{[]string{"dnc", "reassigned"}, "parley dnc reassigned needs one of the commands export, import; parley help dnc reassigned"},
		{[]string{"call", "lst"}, "did you mean \"list\"?"},
		{[]string{"call", "place", "--agent", "a"}, `expected "<number>"; parley help call place explains the command`},
		{[]string{"serv"}, `did you mean "serve"?; parley help lists the commands`},
		{[]string{"help", "trunk"}, "List carrier profiles, or show one."},
		{[]string{"plan", "--calls", "100", "--json"}, `"calls_per_node": `},
		{[]string{"version", "--sbom"}, `"purl": "pkg:golang/github.com/jackc/pgx/v5@v5.`},
		{[]string{"key", "create", "--org", "a", "--rate-limit", "-3"}, `"-3": accepted: requests per minute`},
		{[]string{"key", "create", "--org", "a", "--rate-limit", "--privileged"}, "--rate-limit: expected a value"},
	} {
		var out bytes.Buffer
		run(&env{Context: t.Context(), out: &out, errs: &out, environ: nil}, slices.Clone(c.args))
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("parley %v prints %q, want %q in it", c.args, out.String(), c.want)
		}
	}
}

// TestDocsLinks checks that every link of the documentation leads to a page and heading that exist, and that the
// navigation lists every page.
func TestDocsLinks(t *testing.T) {
	faults, err := docs.New(documentation).Check()
	if err != nil || len(faults) > 0 {
		t.Errorf("%v:\n%s", err, strings.Join(faults, "\n"))
	}
}

// TestComparisonHasSources checks that each cell of the table that compares systems links to its source.
func TestComparisonHasSources(t *testing.T) {
	_, table, ok := strings.Cut(read(t, "docs/guide/faq.md"), "| | Parley |")
	if !ok {
		t.Fatal("docs/guide/faq.md has no comparison")
	}
	n := 0
	for i, line := range strings.Split(table, "\n") {
		if i < 2 || !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for _, cell := range cells[1:] {
			if cell = strings.TrimSpace(cell); cell == "" {
				continue
			}
			if n++; !strings.Contains(cell, "](") {
				t.Errorf("%s: %s has no source", cells[0], cell)
			}
		}
	}
	if n < 15 {
		t.Errorf("%d cells", n)
	}
}

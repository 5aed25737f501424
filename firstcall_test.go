package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestFirstCall runs the commands of docs/guide/first-call.md in an empty folder, against a carrier and fake providers.
func TestFirstCall(t *testing.T) {
	t.Parallel()
	var invites inviteCounter
	proxy := carrier(t, &siptest.Carrier{Answer: invites.accept(3 * time.Second)}).Addr().String()
	fake := fakes(t)
	dir := openDir(t)
	environ := []string{ // in place of those of the page
		"PARLEY_DATA_DIR=" + dir + "/data", "PARLEY_SIP_ADDR=127.0.0.1:" + freePort(t), "PARLEY_MEDIA_IP=127.0.0.1", "PARLEY_WEBRTC_UDP_PORT=off",
		"PARLEY_HTTP_ADDR=127.0.0.1:" + freePort(t), "PARLEY_METRICS_ADDR=127.0.0.1:" + freePort(t), "PARLEY_MAX_CALLS=100", "PARLEY_RATE_LIMIT=off",
		"PARLEY_DEEPGRAM_URL=ws://" + fake, "PARLEY_OPENAI_URL=http://" + fake + "/v1", "PARLEY_ELEVENLABS_URL=ws://" + fake,
	}
	page := read(t, "docs/guide/first-call.md")
	env1, file := filepath.Join(dir, "parley.env"), filepath.Join(dir, "parley.yaml")
	// do runs the line of the page that contains part, with replaced words.
	do := func(want int, part string, pairs ...string) (out, errs string) {
		t.Helper()
		line := regexp.MustCompile(`(?m)bin/parley ((?:[^\n)]*\\\n)*[^\n)]*` + regexp.QuoteMeta(part) + `(?:[^\n)]*\\\n)*[^\n)]*)`).FindStringSubmatch(page)
		if line == nil {
			t.Fatalf("the page has no command with %q", part)
		}
		text := strings.NewReplacer(append(pairs, "\\\n", "", "parley.env", env1, "parley.yaml", file, " --stun stun.l.google.com:19302", "")...).Replace(line[1])
		var o, e bytes.Buffer
		code := run(&env{Context: t.Context(), out: &o, errs: &e, environ: environ}, strings.Fields(text))
		if code != want {
			t.Fatalf("parley %s exits with %d: %s%s", text, code, &o, &e)
		}
		return o.String(), e.String()
	}
	_, steps := do(0, "--market us", "--database built-in", "--database built-in --dir "+dir)
	for name, key := range map[string]string{env1: "PARLEY_OPENAI_API_KEY", file: "organizations[main].trunks[carrier].password"} {
		if !strings.Contains(steps, name+": "+key) {
			t.Errorf("init does not name %s: %s", key, steps)
		}
	}
	do(1, "doctor")
	do(2, "apply -f")
	for name, value := range map[string]string{env1: "k", file: "secret"} {
		text := strings.ReplaceAll(strings.ReplaceAll(read(t, name), "change-me.pstn.twilio.com", proxy), "change-me", value)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do(0, "doctor")
	do(0, "apply -f")
	c, err := config.Load(env1, environ)
	if err != nil {
		t.Fatal(err)
	}
	runServer(t, c, slog.New(slog.DiscardHandler))
	key, _ := do(0, "key create")
	environ = append(environ, "PARLEY_API_KEY="+strings.TrimSpace(key))
	id, _ := do(0, "call place")
	id = strings.TrimSpace(id)
	eventually(t, "the call has words", func() bool {
		out, _ := do(0, "logs call_", "call_01M8C0K2AZ7B0QAYQH362Y6JGG", id)
		return strings.Contains(out, "Hello, this is a test call") && strings.Contains(out, "ended:")
	})
	eventually(t, "the messages are stored", func() bool {
		out, _ := do(0, "logs --sip", "call_01M8C0K2AZ7B0QAYQH362Y6JGG", id)
		return strings.Contains(out, "INVITE sip:+12025550123@")
	})
}

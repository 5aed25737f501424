package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// TestProvidersCheck checks that the command tests every endpoint as calls use it, prints the provider's message for a
// refusal, and never prints a key.
func TestProvidersCheck(t *testing.T) {
	t.Parallel()
	good, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", fakeprovider.Script{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = good.Close() }()
	bad, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", fakeprovider.Script{
		Fault: func(fakeprovider.Provider, int) fakeprovider.Fault { return fakeprovider.Absent },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bad.Close() }()
	environ := []string{
		"PARLEY_DATA_DIR=" + t.TempDir() + "/none",
		"PARLEY_PROVIDER_DG_KIND=deepgram", "PARLEY_PROVIDER_DG_URL=ws://" + good.Addr(), "PARLEY_PROVIDER_DG_KEY=canary",
		"PARLEY_PROVIDER_LOCAL_KIND=chat", "PARLEY_PROVIDER_LOCAL_URL=http://" + good.Addr() + "/v1", "PARLEY_PROVIDER_LOCAL_KEY=canary",
		"PARLEY_PROVIDER_OLD_KIND=chat", "PARLEY_PROVIDER_OLD_URL=http://" + bad.Addr() + "/v1", "PARLEY_PROVIDER_OLD_KEY=canary",
	}
	runCommand := func(args ...string) (string, int) {
		var out bytes.Buffer
		code := run(&env{Context: context.Background(), out: &out, errs: &out, environ: environ}, append([]string{"providers"}, args...))
		return out.String(), code
	}
	for _, tt := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"list"}, 0, []string{"dg ", "deepgram", "asr,tts", good.Addr(), "set"}},
		{[]string{"check", "dg", "local", "--listen"}, 0, []string{`"hello, this is a test of the voice."`, "s of speech", `"you said OK?"`}},
		{[]string{"check", "old"}, 1, []string{"old ", "model", "failed: ", "404"}},
		{[]string{"check", "new"}, 1, []string{`"new" is not a configured provider; accepted: dg, dg-flux, `}},
	} {
		out, code := runCommand(tt.args...)
		if code != tt.code || strings.Contains(out, "canary") {
			t.Errorf("%v: exit code %d, want %d:\n%s", tt.args, code, tt.code, out)
		}
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", tt.args, want, out)
			}
		}
	}
}

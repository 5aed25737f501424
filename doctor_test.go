package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/recording/s3/s3test"
	"github.com/parley-voice/parley/control/secretbox"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/sip/siptest"
)

// doctorReport is the JSON output of parley doctor.
type doctorReport struct {
	Findings []admincli.Finding `json:"findings"`
	Errors   int                `json:"errors"`
}

// find returns the findings of a check.
func (r doctorReport) find(check string) (found []admincli.Finding) {
	for _, f := range r.Findings {
		if f.Check == check {
			found = append(found, f)
		}
	}
	return found
}

// TestDoctor breaks a complete set-up in one way at a time. The doctor must name the cause, and say how to repair it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	good := goodSetup(t)
	cert, _ := newCertificate(t)
	_, otherKey := newCertificate(t)
	expired, expiredKey := newCertificateUntil(t, time.Now().Add(-time.Hour))
	tls := func(cert, key []byte) map[string]string {
		return map[string]string{
			"PARLEY_HTTP_TLS_CERT": writeFile(t, "cert", string(cert)), "PARLEY_HTTP_TLS_KEY": writeFile(t, "key", string(key)),
			"PARLEY_PUBLIC_URL": "https://127.0.0.1",
		}
	}
	set := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for pair := range slices.Chunk(pairs, 2) {
			all[pair[0]] = pair[1]
		}
		return all
	}
	old, lost := demoDatabase(t, "127.0.0.1:9"), good["PARLEY_DATABASE_URL"]
	alterDatabase(t, old, "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)")
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	downBucket := s3test.New(t)
	downBucket.Close()
	taken := takenPort(t)
	other, err := net.Listen("tcp", "127.0.0.1:0") // of this program, which has no file of the data directory open
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	foreign := other.Addr().String()

	for name, row := range map[string]struct {
		change map[string]string
		check  string
		level  admincli.Level
		want   []string // parts of the result and of the fix
	}{
		"wrong database password": {
			set("PARLEY_DATABASE_URL", refusingDatabase(t)), "database", admincli.Error,
			[]string{"refuses the password", "correct the password in PARLEY_DATABASE_URL"},
		},
		"database down": {
			set("PARLEY_DATABASE_URL", "postgres://parley:canary@127.0.0.1:"+freePort(t)+"/parley?sslmode=disable"), "database", admincli.Error,
			[]string{"connection refused", "start PostgreSQL"},
		},
		"old schema":            {set("PARLEY_DATABASE_URL", old), "database", admincli.Warning, []string{"the schema has version", "start parley serve"}},
		"no schema":             {set("PARLEY_DATABASE_URL", dbtest.Empty(t)), "database", admincli.Warning, []string{"no tables yet"}},
		"bucket down":           {set("PARLEY_BUCKET_URL", downBucket.BucketURL("")), "bucket", admincli.Error, []string{"connection refused", "start the server"}},
		"wrong bucket key":      {set("PARLEY_S3_SECRET", "wrong"), "bucket", admincli.Error, []string{"refuses the access key", "PARLEY_S3_SECRET"}},
		"port taken":            {set("PARLEY_HTTP_ADDR", taken), "port", admincli.Error, []string{"in use by the program sleep", "PARLEY_HTTP_ADDR"}},
		"foreign media address": {set("PARLEY_SIP_ADDR", "0.0.0.0:0", "PARLEY_MEDIA_IP", "198.51.100.7"), "address", admincli.Error, []string{"198.51.100.7 is neither", "set PARLEY_MEDIA_IP=203.0.113.5"}},
		"expired certificate":   {tls(expired, expiredKey), "certificate", admincli.Error, []string{"expired on", "renew it"}},
		"wrong certificate key": {tls(cert, otherKey), "certificate", admincli.Error, []string{"private key does not match public key", "PARLEY_HTTP_TLS_KEY"}},
		"silent trunk": {
			set("PARLEY_DATABASE_URL", demoDatabase(t, silent.LocalAddr().String())), "trunk", admincli.Error,
			[]string{"does not answer OPTIONS", "firewall"},
		},
		"provider refuses the key": {set("PARLEY_PROVIDER_GATE_KEY", "wrong"), "provider", admincli.Error, []string{"model gate", "Incorrect API key", "parley providers check gate"}},
		"provider without DNS": {
			set("PARLEY_PROVIDER_GATE_URL", "https://gate.invalid/v1"), "provider", admincli.Error, []string{"gate.invalid", "correct the host in its URL, or the DNS server"},
		},
		"placeholder of a key": {set("PARLEY_PROVIDER_GATE_KEY", "change-me"), "provider", admincli.Error, []string{"the key of gate is still change-me", "enter the key"}},
		"provider not configured": {
			set("PARLEY_PROVIDER_GATE_KIND", "", "PARLEY_PROVIDER_GATE_URL", "", "PARLEY_PROVIDER_GATE_MODEL", "", "PARLEY_PROVIDER_GATE_KEY", ""),
			"provider", admincli.Error,
			[]string{"the agent demo of demo uses the model gate, which is not configured", "configure it"},
		},
		"placeholder of a setting": {set("PARLEY_S3_ID", "change-me"), "settings", admincli.Error, []string{"PARLEY_S3_ID still contains change-me", "enter your value"}},
		"placeholder of a trunk": {
			set("PARLEY_DATABASE_URL", demoDatabase(t, "change-me.example.invalid")), "file", admincli.Error,
			[]string{"the database: organizations[demo].trunks[demo].proxy still contains change-me", "apply it"},
		},
		"trunk without DNS": {
			set("PARLEY_DATABASE_URL", demoDatabase(t, "carrier.invalid:5060")), "trunk", admincli.Error, []string{"carrier.invalid", "correct the host in the trunk's proxy"},
		},
		"ACME host without an address": {
			set("PARLEY_HTTP_ACME", "on", "PARLEY_PUBLIC_URL", "https://parley.invalid"), "certificate", admincli.Error,
			[]string{"parley.invalid has no address in DNS", "add a DNS record"},
		},
		"port of another parley": {set("PARLEY_HTTP_ADDR", foreign), "port", admincli.Error, []string{"a parley with another data directory", "stop that process"}},
		"disk full":              {set("PARLEY_RECORDING_RESERVE", "1000GB"), "disk", admincli.Error, []string{"PARLEY_RECORDING_RESERVE", "free space"}},
		"data directory":         {set("PARLEY_DATA_DIR", writeFile(t, "file", "")), "disk", admincli.Error, []string{"is not writable", "set PARLEY_DATA_DIR"}},
		"wrong seal key":         {set("PARLEY_SEAL_KEY", string(secretbox.Generate())), "seal key", admincli.Error, []string{"lacks the key", "set PARLEY_SEAL_KEY"}},
		"no seal key":            {set("PARLEY_SEAL_KEY", ""), "seal key", admincli.Error, []string{"lacks the key", "set PARLEY_SEAL_KEY"}},
		"connections":            {set("PARLEY_DATABASE_CONNECTIONS", "1000"), "database", admincli.Error, []string{"1 nodes open up to 1001 connections", "max_connections"}},
		"calls beyond ports":     {set("PARLEY_RTP_PORTS", "20000-20199"), "RTP ports", admincli.Warning, []string{"enough for 100 calls", "PARLEY_MAX_CALLS=100"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := maps.Clone(good)
			maps.Copy(settings, row.change)
			report, text := runDoctor(t, settings, stunServer(t))
			found := report.find(row.check)
			i := slices.IndexFunc(found, func(f admincli.Finding) bool { return f.Level == row.level && strings.Contains(f.Result, row.want[0]) })
			if i < 0 {
				t.Fatalf("no finding %q; got %+v", row.want[0], found)
			}
			for _, want := range row.want {
				if !strings.Contains(found[i].Result+"\n"+found[i].Fix, want) {
					t.Errorf("%+v: want %q", found[i], want)
				}
			}
			for _, secret := range []string{"canary", s3test.Secret, dbtest.SealKey, "gate-key"} {
				if strings.Contains(text, secret) {
					t.Errorf("the output contains the secret %q", secret)
				}
			}
		})
	}

	t.Run("good", func(t *testing.T) {
		report, text := runDoctor(t, good, "")
		for _, check := range []string{"database", "seal key", "bucket", "trunk", "provider", "disk", "RTP ports"} {
			if found := report.find(check); len(found) == 0 || found[0].Level != admincli.OK {
				t.Errorf("%s: %+v", check, found)
			}
		}
		if report.Errors > 0 {
			t.Errorf("errors in a good set-up: %s", text)
		}
	})
	t.Run("file", func(t *testing.T) { doctorOfFile(t, good) })
	t.Run("clocks", func(t *testing.T) {
		settings := maps.Clone(good)
		settings["PARLEY_DATABASE_URL"] = lost
		x, err := (&env{Context: t.Context(), out: io.Discard, errs: io.Discard, environ: environOf(settings)}).examination()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		x.Out, x.Now = &out, func() time.Time { return time.Now().Add(-time.Minute) }
		if err = (admincli.Doctor{}).Run(t.Context(), x); err == nil || !strings.Contains(out.String(), "the clock of this machine is 1m0s behind that of the database") {
			t.Errorf("%v\n%s", err, &out)
		}
	})
}

// doctorOfFile checks a file that is not applied yet, in a folder without a database. Three keys are missing.
func doctorOfFile(t *testing.T, good map[string]string) {
	t.Helper()
	settings := maps.Clone(good)
	delete(settings, "PARLEY_DATABASE_URL")
	settings["PARLEY_DATA_DIR"] = openDir(t)
	for _, name := range []string{"DEEPGRAM", "OPENAI", "ELEVENLABS"} {
		settings["PARLEY_"+name+"_API_KEY"] = "change-me"
	}
	proxy := carrier(t, &siptest.Carrier{}).Addr().String()
	file := writeFile(t, "parley.yaml", `
organizations:
- name: main
  agents: [{name: assistant, published: true, speech: {asr: {provider: deepgram}, llm: {provider: openai}, tts: {provider: elevenlabs}}}]
  trunks: [{name: out, proxy: "sip:`+proxy+`", username: change-me, password: change-me, caller_numbers: ["+12025550100"]}]
`)
	report, text := runDoctor(t, settings, "", "--file", file)
	var failed []string
	for _, f := range report.Findings {
		if f.Level == admincli.Error {
			failed = append(failed, f.Result)
		}
	}
	want := []string{
		file + ": organizations[main].trunks[out].password still contains change-me", file + ": organizations[main].trunks[out].username still contains change-me",
		"the key of deepgram is still change-me", "the key of elevenlabs is still change-me", "the key of openai is still change-me",
	}
	if !slices.Equal(failed, want) {
		t.Errorf("%q, want %q", failed, want)
	}
	for _, part := range []string{"out (sip:" + proxy + ") answers OPTIONS", "no published agent uses them: model gate, speech-to-text deepgram-flux", "voice openai"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	if _, err := os.Stat(settings["PARLEY_DATA_DIR"] + "/postgres"); !os.IsNotExist(err) {
		t.Errorf("the doctor created a database: %v", err)
	}
}

// TestDoctorBesideServer runs the doctor while a server has its ports open, on the built-in database.
func TestDoctorBesideServer(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"PARLEY_DATA_DIR": openDir(t), "PARLEY_WEBRTC_UDP_PORT": "off", "PARLEY_FAKE_URL": fakes(t)}
	for _, key := range []string{"PARLEY_HTTP_ADDR", "PARLEY_METRICS_ADDR", "PARLEY_SIP_ADDR"} {
		settings[key] = "127.0.0.1:" + freePort(t)
	}
	c, err := config.Load("", environOf(settings))
	if err != nil {
		t.Fatal(err)
	}
	runServer(t, c, slog.New(slog.DiscardHandler))
	report, text := runDoctor(t, settings, "")
	ports := report.find("port")
	for _, f := range ports {
		if f.Level != admincli.OK || !strings.Contains(f.Result, fmt.Sprintf("in use by the server of this data directory, process %d", os.Getpid())) {
			t.Errorf("%+v", f)
		}
	}
	if len(ports) != 4 || report.Errors > 0 || report.find("database")[0].Level != admincli.OK {
		t.Error(text)
	}
}

// runDoctor runs parley doctor --json and checks its exit code.
func runDoctor(t *testing.T, settings map[string]string, stun string, more ...string) (report doctorReport, text string) {
	t.Helper()
	var out, errs bytes.Buffer
	args := append([]string{"doctor", "--json"}, more...)
	if stun != "" {
		args = append(args, "--stun", stun)
	}
	began := time.Now()
	code := run(&env{Context: t.Context(), out: &out, errs: &errs, environ: environOf(settings)}, args)
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v: %s%s", err, &out, &errs)
	}
	if (code == 1) != (report.Errors > 0) || code > 1 {
		t.Errorf("exit code %d with %d errors", code, report.Errors)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the doctor took %v", took)
	}
	return report, out.String() + errs.String()
}

func environOf(settings map[string]string) (all []string) {
	for key, value := range settings {
		all = append(all, key+"="+value)
	}
	return all
}

func fakes(t *testing.T) string {
	t.Helper()
	s, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", fakeprovider.Typical())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.Addr()
}

// goodSetup returns settings without an error: a database with a trunk, a bucket and a provider.
func goodSetup(t *testing.T) map[string]string {
	t.Helper()
	gate := &keyedModel{accepted: map[string]bool{"gate-key": true}}
	return map[string]string{
		"PARLEY_DATA_DIR": openDir(t), "PARLEY_HTTP_ADDR": "127.0.0.1:0", "PARLEY_METRICS_ADDR": "127.0.0.1:0", "PARLEY_SIP_ADDR": "127.0.0.1:0",
		"PARLEY_WEBRTC_UDP_PORT": "0", "PARLEY_MAX_CALLS": "200",
		"PARLEY_DATABASE_URL":      demoDatabase(t, carrier(t, &siptest.Carrier{}).Addr().String()),
		"PARLEY_SEAL_KEY":          dbtest.SealKey,
		"PARLEY_BUCKET_URL":        s3test.New(t).BucketURL("calls"),
		"PARLEY_S3_ID":             s3test.ID,
		"PARLEY_S3_SECRET":         s3test.Secret,
		"PARLEY_RECORDING_RESERVE": "1MB",

		"PARLEY_PROVIDER_GATE_KIND": "chat", "PARLEY_PROVIDER_GATE_URL": gate.serve(t, fakes(t)),
		"PARLEY_PROVIDER_GATE_MODEL": "m", "PARLEY_PROVIDER_GATE_KEY": "gate-key",
	}
}

// demoDatabase returns the URL of a database whose trunk has the proxy address.
func demoDatabase(t *testing.T, proxy string) string {
	t.Helper()
	url := dbtest.URL(t)
	d, err := dbtest.Open(t.Context(), url, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	file := strings.Replace(demo.File, "llm: {provider: fake}", "llm: {provider: gate}", 1)
	if _, err = createDemo(t.Context(), d, fmt.Sprintf(file, "127.0.0.1:9", demo.Secret, proxy)); err != nil {
		t.Fatal(err)
	}
	return url
}

func alterDatabase(t *testing.T, url, sql string) {
	t.Helper()
	d, err := dbtest.Open(t.Context(), url, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dbtest.Exec(t, d, sql)
}

// refusingDatabase returns the URL of a server that refuses every password.
func refusingDatabase(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024)) // the startup message
			body := "SFATAL\x00VFATAL\x00C28P01\x00Mpassword authentication failed for user \"parley\"\x00\x00"
			_, _ = conn.Write(append([]byte{'E', 0, 0, 0, byte(len(body) + 4)}, body...))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-over
	})
	return "postgres://parley:canary@" + l.Addr().String() + "/parley?sslmode=disable"
}

// takenPort returns an address at which another program listens.
func takenPort(t *testing.T) string {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	file, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	cmd.ExtraFiles = []*os.File{file}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return l.Addr().String()
}

// stunServer returns the address of a STUN server that sees every client as 203.0.113.5, at the client's port.
func stunServer(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			at, ok := from.(*net.UDPAddr)
			if n < 20 || !ok {
				continue
			}
			res := append([]byte{1, 1, 0, 12}, buffer[4:20]...) // Binding success response with XOR-MAPPED-ADDRESS, RFC 8489
			res = append(res, 0, 0x20, 0, 8, 0, 1)
			res = binary.BigEndian.AppendUint16(res, uint16(at.Port)^0x2112)
			res = append(res, 203^0x21, 0^0x12, 113^0xa4, 5^0x42)
			_, _ = conn.WriteTo(res, from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-over
	})
	return conn.LocalAddr().String()
}

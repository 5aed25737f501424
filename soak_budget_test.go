package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/sip/siptest"
)

// Limits for the effect of one organization's large requests on others.
const (
	mostGrown   = 400 << 20             // maximum growth of the process, in bytes
	mostGap     = 60 * time.Millisecond // p99 of the time between two RTP packets of a call
	mostRefusal = time.Second
	idleGap     = 30 * time.Millisecond // the machine is not idle if p99 is larger before the attack
	idleLoad    = 1.5
)

// idle reports whether the machine's load average is low.
func idle(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	var load float64
	if _, err = fmt.Sscan(string(text), &load); err != nil {
		t.Fatal(err)
	}
	return load < idleLoad
}

// phone receives RTP on its own socket and records the arrival of each packet.
type phone struct {
	conn *net.UDPConn

	mu sync.Mutex
	at []time.Time
}

func newPhone(t *testing.T) *phone {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := &phone{conn: conn}
	var reads sync.WaitGroup
	reads.Go(p.read)
	t.Cleanup(func() {
		_ = conn.Close()
		reads.Wait()
	})
	return p
}

// read answers each packet with a packet of silence, so that the call continues.
func (p *phone) read() {
	silence := append([]byte{0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}, bytes.Repeat([]byte{0xff}, 160)...)
	buf := make([]byte, 2048)
	for n := uint16(0); ; n++ {
		_, from, err := p.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.at = append(p.at, time.Now())
		p.mu.Unlock()
		binary.BigEndian.PutUint16(silence[2:], n)
		binary.BigEndian.PutUint32(silence[4:], uint32(n)*160)
		_, _ = p.conn.WriteToUDPAddrPort(silence, from) // the call may have ended
	}
}

func (p *phone) sdp() []byte {
	return fmt.Appendf(nil, "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio %d RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\na=ptime:20\r\n",
		p.conn.LocalAddr().(*net.UDPAddr).Port)
}

// gap returns the p99 of the time between two packets since the last call of gap, and the number of packets.
func (p *phone) gap() (p99 time.Duration, packets int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(p.at); i++ {
		gaps = append(gaps, p.at[i].Sub(p.at[i-1]))
	}
	p.at = nil
	if len(gaps) == 0 {
		return time.Hour, 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)*99/100], len(gaps)
}

func residentMemory(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s", text)
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// zipBomb returns a form with a file of one megabyte that unpacks to one gigabyte.
func zipBomb(t *testing.T) (kind string, body []byte) {
	t.Helper()
	blanks := bytes.Repeat([]byte(" "), 16<<20)
	var file, b bytes.Buffer
	z := zip.NewWriter(&file)
	for i := range 60 {
		w, err := z.Create(fmt.Sprintf("xl/media/x%d.xml", i))
		if err == nil {
			_, err = w.Write(blanks)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	form := multipart.NewWriter(&b)
	err := form.WriteField("campaign", `{"name":"x","agent_id":"demo","calls_per_minute":20}`)
	if err == nil {
		var w io.Writer
		if w, err = form.CreateFormFile("rows", "rows.xlsx"); err == nil {
			_, err = w.Write(file.Bytes())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err = form.Close(); err != nil {
		t.Fatal(err)
	}
	return form.FormDataContentType(), b.Bytes()
}

// TestSoakRequestBudget sends the largest requests that one key can make while another organization has a live call.
// The process may grow little, each request must be refused at once, and the call must not be disturbed.
func TestSoakRequestBudget(t *testing.T) {
	soakOnly(t)
	p := newPhone(t)
	carrier := &siptest.Carrier{Listen: "127.0.0.1:0", Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: http.StatusOK, SDP: p.sdp()}
	}}
	if err := carrier.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = carrier.Close() })
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(hook.Close)
	s := &soak{t: t, hooks: map[string]map[string]bool{}}
	s.prepare(carrier.Addr().String(), hook.URL)
	cmd := s.serve()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the process was killed
	})
	s.waitReady()
	s.orderUntilAccepted("call")
	for late := time.After(30 * time.Second); ; {
		if _, packets := p.gap(); packets > 0 {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-late:
			t.Fatal("the call has no audio")
		}
	}
	<-time.After(5 * time.Second) // measures the machine without the attack
	calm, _ := p.gap()
	at := attack{t: t, url: s.api.URL, pid: cmd.Process.Pid, phone: p, strict: calm < idleGap && idle(t), key: s.otherKey()}
	t.Logf("before: p99 of the gap %v, %d MiB", calm, residentMemory(t, cmd.Process.Pid)>>20)
	head := `{"name":"x","agent_id":"demo","calls_per_minute":20,"planned_calls":[`
	fill := func(head, element, tail string, size int) []byte {
		return []byte(head + strings.TrimSuffix(strings.Repeat(element, size/len(element)), ",") + tail)
	}
	for _, element := range []string{"0,", "{},", `{"a":0},`, `{"a":"` + strings.Repeat("x", 600) + `"},`} {
		at.run(fmt.Sprintf("4 × 31 MiB of %.12s", element), 4, "/v1/campaigns", "application/json", fill(head, element, "]}", 31<<20))
	}
	at.run("10 × 4 MiB", 10, "/v1/calls/phone", "application/json", fill(`{"agent_id":"demo","to_number":"1","metadata":{"a":[`, "0,", "]}}", 4<<20-100))
	kind, bomb := zipBomb(t)
	at.run(fmt.Sprintf("6 spreadsheets of %d bytes", len(bomb)), 6, "/v1/campaigns", kind, bomb)
}

func (s *soak) otherKey() string {
	s.t.Helper()
	org, err := apikeys.EnsureOrganization(s.t.Context(), s.db.Pool, "globex")
	if err == nil {
		_, err = s.db.Pool.Exec(s.t.Context(), "UPDATE organizations SET settings = settings || '{\"market\": \"us\"}', timezone = 'America/New_York' WHERE id = $1", org)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	_, key, err := apikeys.CreateKey(s.t.Context(), s.db.Pool, apikeys.Key{OrgID: org, RateLimit: apikeys.RateOff})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(key)
}

// attack is a set of concurrent requests of one organization.
type attack struct {
	t        *testing.T
	url, key string
	pid      int
	phone    *phone
	strict   bool // the machine is idle enough to check times
}

func (a attack) run(name string, n int, path, kind string, body []byte) {
	before := residentMemory(a.t, a.pid)
	a.phone.gap()
	ctx, over := context.WithCancel(a.t.Context())
	var most int64
	var watch, all sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			most = max(most, residentMemory(a.t, a.pid))
			<-time.After(10 * time.Millisecond)
		}
	})
	var mu sync.Mutex
	answers := map[string]int{}
	var slowest time.Duration
	for i := range n {
		all.Go(func() {
			began := time.Now()
			code := a.send(path, kind, fmt.Sprintf("%s %d", name, i), body)
			mu.Lock()
			defer mu.Unlock()
			answers[code]++
			if !strings.HasSuffix(code, "campaign_agent_unknown") { // the server read the whole request
				slowest = max(slowest, time.Since(began))
			}
		})
	}
	all.Wait()
	<-time.After(4 * time.Second) // long enough for a p99, but shorter than the agent waits for a silent callee
	over()
	watch.Wait()
	gap, packets := a.phone.gap()
	a.t.Logf("%-40s %v: grew %d MiB, slowest refusal %v, p99 of the gap %v of %d packets", name, answers, (most-before)>>20, slowest.Round(time.Millisecond), gap, packets)
	if most-before > mostGrown {
		a.t.Errorf("%s: the process grew by %d MiB", name, (most-before)>>20)
	}
	if packets < 150 {
		a.t.Errorf("%s: %d packets in 4 s: the measured call has ended", name, packets)
	}
	if a.strict && (slowest > mostRefusal || gap > mostGap) {
		a.t.Errorf("%s: slowest refusal %v, p99 of the gap %v", name, slowest, gap)
	}
}

func (a attack) send(path, kind, key string, body []byte) string {
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url+path, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "none" // the server closed the connection while the body was sent
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body)
	code := regexp.MustCompile(`"code":"(\w+)"`).FindSubmatch(text)
	if code == nil {
		return res.Status
	}
	return fmt.Sprint(res.StatusCode, " ", string(code[1]))
}

package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/control"
)

// TestMain runs the test binary as a process that writes entries until it is killed, if PARLEYTEST_JOURNAL is set.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PARLEYTEST_JOURNAL"); dir != "" {
		j, err := Open(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		for n := 0; ; n++ {
			if err := j.Append(entry(n)); err != nil {
				return
			}
			fmt.Fprintln(os.Stdout, n)
			j.Change(entry(n).Attempt, func(e *Entry) { e.Answered = e.At })
		}
	}
	m.Run()
}

func entry(n int) Entry {
	return Entry{
		Attempt: fmt.Sprintf("att_%d", n), Call: fmt.Sprintf("call_%d", n), Org: "org", Contact: "con",
		Number: Hash{byte(n % 7), 1}, At: time.Now().Add(-time.Hour).Add(time.Duration(n) * time.Millisecond).Round(0).UTC(),
	}
}

func mustOpen(t testing.TB, dir string) *Journal {
	t.Helper()
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func checkEqual(t interface{ Fatalf(string, ...any) }, got, want []Entry) {
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range got {
		g, w := got[i], want[i]
		if !g.At.Equal(w.At) || !g.Answered.Equal(w.Answered) {
			t.Fatalf("entry %d: times %v, want %v", i, g, w)
		}
		g.At, w.At, g.Answered, w.Answered = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("entry %d: %+v, want %+v", i, g, w)
		}
	}
}

// TestTornFile cuts the file at many places, and just before and after each newline. It checks that complete lines
// are read and that later writes succeed.
func TestTornFile(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir)
	all := []Entry{entry(0), entry(1), entry(2)}
	all[2].End = &End{Status: control.Failed, Reason: "busy"}
	if err := errors.Join(j.Append(all...), j.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "sent-0.log")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(text) + 1 {
		if end := cut > 0 && text[cut-1] == '\n' || cut < len(text) && text[cut] == '\n'; !end && cut%41 != 0 {
			continue
		}
		if err := os.WriteFile(name, text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Count(text[:cut], []byte("\n"))
		if cut < len(text) && text[cut] == '\n' {
			whole++ // only the newline of this line is missing
		}
		j := mustOpen(t, dir)
		checkEqual(t, j.Entries(), all[:whole])
		if err := errors.Join(j.Append(entry(9)), j.Close()); err != nil {
			t.Fatal(err)
		}
		j = mustOpen(t, dir)
		if n := len(j.Entries()); n != whole+1 {
			t.Fatalf("cut at %d: %d entries after another append, want %d", cut, n, whole+1)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedLine changes each byte of a line, and checks that the other lines are read.
func TestDamagedLine(t *testing.T) {
	text, err := line(entry(1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(text) - 1 {
		bad := bytes.Clone(text[:len(text)-1])
		bad[i] ^= 0x10
		if e, ok := parse(bad); ok && i >= 8 {
			t.Fatalf("byte %d flipped: read as %+v", i, e)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sent-0.log"), append([]byte("00000000 {}\n\x00\x00\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	j := mustOpen(t, dir)
	if n := len(j.Entries()); n != 1 || j.Stats().Damaged != 2 {
		t.Errorf("%d entries, %d damaged lines", n, j.Stats().Damaged)
	}
}

// TestRecovery compares the journal with a model over random sequences of closing, crashes during a write, and
// rewriting of the file.
func TestRecovery(t *testing.T) {
	memory, err := os.MkdirTemp("/dev/shm", "parley-journal-") //nolint:usetesting // thousands of fsyncs
	if err != nil {
		memory = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(memory) })
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(memory, "") //nolint:usetesting // see above
		if err != nil {
			r.Fatal(err)
		}
		j, want := mustOpen(t, dir), []Entry(nil)
		next := 0
		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				var some []Entry
				for range rapid.IntRange(1, 4).Draw(r, "n") {
					some = append(some, entry(next))
					next++
				}
				if err := j.Append(some...); err != nil {
					r.Fatal(err)
				}
				want = append(want, some...)
			},
			"change": func(r *rapid.T) {
				if len(want) == 0 {
					return
				}
				e := &want[rapid.IntRange(0, len(want)-1).Draw(r, "entry")]
				e.Void = !e.Void
				j.Change(e.Attempt, func(x *Entry) { x.Void = e.Void })
				if err := j.Flush(); err != nil {
					r.Fatal(err)
				}
			},
			"compact": func(r *rapid.T) {
				j.disk.Lock()
				defer j.disk.Unlock()
				if err := j.rewrite(); err != nil {
					r.Fatal(err)
				}
			},
			"crash": func(r *rapid.T) {
				torn := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(r, "torn")
				_, _ = j.file.Write(bytes.ReplaceAll(torn, []byte("\n"), nil))
				for _, l := range j.locks { // the kernel releases the locks of a dead process
					_ = l.Close()
				}
				_ = j.file.Close()
				j = mustOpen(t, dir)
			},
			"close": func(r *rapid.T) {
				if err := j.Close(); err != nil {
					r.Fatal(err)
				}
				j = mustOpen(t, dir)
			},
			"": func(r *rapid.T) { checkEqual(r, j.Entries(), want) },
		})
		_ = j.Close()
	})
}

// TestKilledProcess kills a process while it writes, and checks that every acknowledged entry is on disk.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	for range 5 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PARLEYTEST_JOURNAL="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, last := bufio.NewScanner(out), -1
		for lines.Scan() {
			if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
				t.Fatal(err)
			}
			if last == 50 {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait() // returns an error because the process was killed
		j := mustOpen(t, dir)
		for n := range last + 1 {
			if len(j.SentTo(entry(n).Number, entry(n).Attempt)) == 0 {
				t.Fatalf("entry %d of %d is lost", n, last)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBounds checks that expired entries are dropped, and that the oldest entries with a result are dropped if there
// are too many.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	j, err := open(dir, 4)
	if err != nil {
		t.Fatal(err)
	}
	old, open := entry(100), entry(101)
	old.At, old.Void = time.Now().Add(-Retention-time.Minute), true
	open.At = time.Now().Add(-Retention - time.Minute)
	all := []Entry{old, open}
	for n := range 6 {
		e := entry(n)
		e.Void = n != 0
		all = append(all, e)
	}
	if err := errors.Join(j.Append(all...), j.Flush()); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range j.Entries() {
		left = append(left, e.Attempt)
	}
	if want := []string{"att_101", "att_0", "att_4", "att_5"}; !reflect.DeepEqual(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
	if s := j.Stats(); s.Dropped != 3 || s.Entries != 4 {
		t.Errorf("stats: %+v", s)
	}
}

// TestDiskFails checks that nothing may be sent until all entries are on disk.
func TestDiskFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := mustOpen(t, dir)
	if err := j.Append(entry(0)); err != nil {
		t.Fatal(err)
	}
	_ = j.file.Close() // makes writes fail
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(entry(1)); err == nil || j.Err() == nil {
		t.Fatal("a write that failed passed")
	}
	if err := j.Flush(); err == nil || j.Err() == nil {
		t.Fatal("a file that cannot be made passed")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := j.Flush(); err != nil || j.Err() != nil {
		t.Fatal("the disk is well again:", err, j.Err())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(mustOpen(t, dir).Entries()); n != 2 {
		t.Errorf("%d entries on the disk, want 2", n)
	}
}

// TestSlowDisk checks that nothing may be sent while the disk hangs, that running calls do not wait for the disk, and
// that their changes are written later.
func TestSlowDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := mustOpen(t, dir)
	if err := j.Append(entry(0)); err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	_ = in.SetWriteDeadline(time.Now().Add(time.Second)) // fills the pipe, so that the next write hangs
	for err == nil {
		_, err = in.Write(make([]byte, 4096))
	}
	_ = in.SetWriteDeadline(time.Time{})
	_ = j.file.Close()
	j.file = in
	appended := make(chan error, 1)
	go func() { appended <- j.Append(entry(1)) }()
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		for len(j.Entries()) < 2 {
			runtime.Gosched()
		}
		j.Change("att_1", func(e *Entry) { e.Answered = e.At })
		for j.Err() == nil {
			runtime.Gosched()
		}
		j.Stats()
	}()
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		t.Error("a call waits for the disk")
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // the disk works again until the pipe is closed
	if <-appended == nil {      // Append fails, because a pipe cannot be synced
		t.Error("a write that failed passed")
	}
	if err = errors.Join(j.Flush(), j.Err(), j.Close()); err != nil {
		t.Fatal(err)
	}
	if all := mustOpen(t, dir).Entries(); len(all) != 2 || all[1].Answered.IsZero() {
		t.Errorf("on the disk: %+v", all)
	}
}

// TestSlots checks that processes that share a directory have separate journals, and that the journal of a dead
// process is taken over.
func TestSlots(t *testing.T) {
	dir := t.TempDir()
	a, b := mustOpen(t, dir), mustOpen(t, dir)
	if err := errors.Join(a.Append(entry(0)), b.Append(entry(1)), a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if a.Slots()[0] == b.Slots()[0] {
		t.Fatal("two processes write one file")
	}
	c := mustOpen(t, dir)
	if got := c.Slots(); !reflect.DeepEqual(got, []int{0, 1}) || len(c.Entries()) != 2 {
		t.Errorf("slots %v, %d entries", got, len(c.Entries()))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(mustOpen(t, dir).Entries()); n != 2 {
		t.Errorf("%d entries after the adoption", n)
	}
}

// TestSentToIsBounded checks that SentTo returns only the newest entries of a number that is called often.
func TestSentToIsBounded(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	for n := range 300 {
		if err := j.Append(entry(n)); err != nil {
			t.Fatal(err)
		}
	}
	found := j.SentTo(entry(0).Number, "att_0")
	if len(found) != 1+maxSentTo || found[0].Attempt != "att_0" || found[1].Attempt != "att_294" {
		t.Errorf("%d entries, the first two are %q and %q", len(found), found[0].Attempt, found[1].Attempt)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestEndKeepsCost checks that the journal keeps the usage and transfer legs, which determine the cost of a call.
func TestEndKeepsCost(t *testing.T) {
	rate := 0.01
	want := control.CallResult{
		Status: control.Ended, Reason: "callee_hangup", AnsweredAt: time.Unix(1, 0).UTC(), EndedAt: time.Unix(9, 0).UTC(),
		Usage:        json.RawMessage(`[{"serves":"asr","provider":"p","requests":1,"seconds":8}]`),
		TransferLegs: []control.AnsweredLeg{{AnsweredAt: time.Unix(5, 0).UTC(), CostPerMinute: &rate}},
	}
	text, err := json.Marshal(NewEnd(want))
	if err != nil {
		t.Fatal(err)
	}
	var read End
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if got := read.Result(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media/recorder"
)

// chaosCall is a call as its carrier saw it.
type chaosCall struct {
	number          string
	port, node      int // for the audio; SIP port of the node
	invited         time.Time
	answered, ended time.Time // zero if unknown
	byUs            bool      // the node hung up
	hold            time.Duration
}

// chaosRow is a call as the database has it.
type chaosRow struct {
	ID, Number, Status, Reason, Recording, Key string
	Truncated, Answered                        bool
}

// rows returns the result of a query of the present primary.
func chaosRows[T any](c *chaos, to pgx.RowToFunc[T], sql string) ([]T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.pair.DirectURL(c.primary))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, to)
}

// settle cancels the campaigns and waits until all calls have ended and all webhooks are delivered.
func (c *chaos) settle() {
	for i, id := range c.launched {
		status, text, err := c.ask(c.t.Context(), c.node(i), http.MethodPost, "/v1/campaigns/"+id+"/cancel", c.key, "", nil)
		if err != nil || status/100 != 2 && status != http.StatusConflict { // 409: it is completed
			c.t.Errorf("cancel of %s: %d %s %v", id, status, text, err)
		}
	}
	const open = `SELECT (SELECT count(*) FROM calls WHERE status NOT IN ('ended', 'failed'))
		|| ' calls, ' || (SELECT count(*) FROM events WHERE done_at IS NULL)
		|| ' events, ' || (SELECT count(*) FROM webhook_deliveries WHERE state <> 'delivered') || ' deliveries'`
	const none = "0 calls, 0 events, 0 deliveries"
	began, noted := time.Now(), time.Time{}
	for last := ""; last != none; <-time.After(time.Second) {
		if got, err := chaosRows(c, pgx.RowTo[string], open); err == nil {
			last = got[0]
		}
		if time.Since(noted) > 30*time.Second || last == none {
			noted = time.Now()
			c.note("open: %s", last)
		}
		if time.Since(began) > chaosTail {
			c.t.Errorf("after %v there are still %s", chaosTail, last)
			return
		}
	}
}

// calls returns the calls that the carriers saw, by Call-ID.
func (c *chaos) calls() map[string]*chaosCall {
	all := map[string]*chaosCall{}
	for _, x := range c.carriers {
		for _, e := range x.events {
			k := all[e.call]
			switch {
			case e.kind == "INVITE" && k == nil:
				all[e.call] = &chaosCall{number: e.number, port: e.port, node: e.node, invited: e.at, hold: e.hold}
			case e.kind == "ACK" && k != nil && k.answered.IsZero():
				k.answered = e.at
			case (e.kind == "BYE" || e.kind == "HANGUP") && k != nil && k.ended.IsZero():
				k.ended, k.byUs = e.at, e.kind == "BYE"
			case e.kind != "ACK" && e.kind != "BYE" && e.kind != "HANGUP":
				c.t.Errorf("a carrier logged %s", e.kind)
			}
		}
	}
	return all
}

// affected returns the fault of a call's node during the call, or nil.
func (c *chaos) affected(k *chaosCall) *chaosFault {
	end := k.ended
	if end.IsZero() {
		end = k.invited.Add(time.Minute)
	}
	for i, f := range c.faults {
		if f.port == k.node && f.name != diskFull && f.from.Before(end) && f.to.After(k.invited) {
			return &c.faults[i]
		}
	}
	return nil
}

// judge compares the journals of the carriers and of the webhook receiver, the bucket and the database.
func (c *chaos) judge() {
	t := c.t
	seen := c.calls()
	rows, err := chaosRows(c, pgx.RowToStructByPos[chaosRow], `SELECT id, to_number, status, coalesce(disconnection_reason, ''), recording_status,
		coalesce(recording_key, ''), recording_truncated, answered_at IS NOT NULL FROM calls`)
	if err != nil {
		t.Fatal(err)
	}
	byNumber := map[string]chaosRow{}
	for _, r := range rows {
		if other, ok := byNumber[r.Number]; ok {
			t.Errorf("%s has two calls: %s and %s", r.Number, other.ID, r.ID)
		}
		byNumber[r.Number] = r
	}
	faults := map[string]int{}
	for _, f := range c.faults {
		faults[f.name]++
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		names = append(names, fmt.Sprintf("%s %d", name, faults[name]))
	}
	c.note("%d faults: %s", len(c.faults), strings.Join(names, ", "))
	c.judgeRings(seen, byNumber)
	c.judgeDeliveries(rows)
	c.judgeRecordings(seen, byNumber)
	c.judgeAudio(seen, byNumber)
	reasons := map[string]int{}
	for _, r := range rows {
		reasons[r.Status+" "+r.Reason+", recording "+r.Recording]++
	}
	for _, key := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int { return reasons[b] - reasons[a] }) {
		c.note("  %5d  %s", reasons[key], key)
	}
}

// judgeRings checks that no number rang twice or unlawfully, and that every request has its call.
func (c *chaos) judgeRings(seen map[string]*chaosCall, rows map[string]chaosRow) {
	rang := map[string]int{}
	twice, unlawful, unknown, lost := 0, 0, 0, 0
	for _, k := range seen {
		if rang[k.number]++; rang[k.number] == 2 {
			twice++
			c.t.Errorf("%s was called twice", k.number)
		}
		if at, ok := c.withdrawn[k.number]; c.forbidden[k.number] || ok && k.invited.After(at.Add(time.Second)) {
			unlawful++
			c.t.Errorf("%s was called although it must not be, or %v after its withdrawal", k.number, k.invited.Sub(at))
		}
		if rows[k.number].ID == "" {
			unknown++
			c.t.Errorf("%s was called, but the database has no call", k.number)
		}
	}
	ids := map[string]bool{}
	for _, r := range rows {
		ids[r.ID] = true
	}
	for key, id := range c.orders {
		if !ids[id] {
			lost++
			c.t.Errorf("%s was accepted as %s, which does not exist", key, id)
		}
	}
	c.note("%d calls reached the carriers: %d numbers called twice, %d unlawfully (%d withdrawals, %d numbers at night), %d unknown to the database",
		len(seen), twice, unlawful, len(c.withdrawn), len(c.forbidden), unknown)
	c.note("%d requests were accepted, %d of them lost", len(c.orders), lost)
}

// judgeDeliveries checks that call_ended of each call and call_analyzed of each answered one arrived, each under one ID. A
// call that was settled before its node reported the answer has no call_analyzed.
func (c *chaos) judgeDeliveries(rows []chaosRow) {
	lost, twice := 0, 0
	for _, r := range rows {
		for _, kind := range []string{"call_ended", "call_analyzed"} {
			switch n := len(c.receiver.seen[[2]string{kind, r.ID}]); {
			case n == 1, n == 0 && kind == "call_analyzed" && (!r.Answered || r.Reason == string(control.ReasonUnknown)):
			case n == 0:
				lost++
				c.t.Errorf("%s of %s (%s, %s) did not arrive", kind, r.ID, r.Status, r.Reason)
			default:
				twice++
				c.t.Errorf("%s of %s arrived under %d IDs", kind, r.ID, n)
			}
		}
	}
	c.note("webhooks of %d calls: %d lost, %d under more than one ID", len(rows), lost, twice)
}

// judgeRecordings checks how much of the recordings of lost nodes is missing, and that other recordings are stored.
func (c *chaos) judgeRecordings(seen map[string]*chaosCall, rows map[string]chaosRow) {
	var most time.Duration
	ofLost, missing, full := 0, 0, 0
	for _, k := range seen {
		r := rows[k.number]
		f := c.affected(k)
		object, stored := c.bucket.Object("p/" + r.Key)
		length := time.Duration(len(object)-recorder.HeaderLen) * time.Second / recorder.SampleLen / 8000
		switch {
		case k.answered.IsZero():
		case f != nil && f.name == nodeLost && f.from.Before(k.end()):
			ofLost++
			lost := f.from.Sub(k.answered)
			if stored {
				lost -= length
			}
			most = max(most, lost)
			if lost > 30*time.Second {
				c.note("  %s of %s: %s, answered %v before the loss, recording %s, stored %t with %v", r.ID, f.node, r.Reason, f.from.Sub(k.answered), r.Recording, stored, length)
			}
		case !stored && r.Recording == "failed" && c.hadFullDisk(k):
			full++
		case !stored && r.Recording != "ready" || stored != (r.Recording == "ready"):
			missing++
			c.note("  recording of %s: %s, stored: %t; %s %s; fault: %+v", r.ID, r.Recording, stored, r.Status, r.Reason, f)
		}
	}
	if most > 30*time.Second {
		c.t.Errorf("%v of a recording of a lost node are missing", most)
	}
	c.note("%d calls of lost nodes: at most %v of a recording is missing; %d recordings of other calls are missing", ofLost, most.Round(100*time.Millisecond), missing)
	c.note("%d more calls have no recording, because the disk of their node was full when they were answered", full)
	if missing > 0 {
		c.t.Errorf("%d recordings are missing", missing)
	}
}

// hadFullDisk reports whether the disk of a call's node was full when the call was answered.
func (c *chaos) hadFullDisk(k *chaosCall) bool {
	return slices.ContainsFunc(c.faults, func(f chaosFault) bool {
		return f.port == k.node && f.name == diskFull && f.from.Before(k.answered.Add(time.Second)) && k.answered.Before(f.to.Add(time.Second))
	})
}

func (k *chaosCall) end() time.Time {
	if k.ended.IsZero() {
		return k.answered.Add(k.hold)
	}
	return k.ended
}

// judgeAudio measures how much of the calls of nodes without faults was disturbed: seconds with a gap in the audio, and
// the rest of calls that a node ended early.
func (c *chaos) judgeAudio(seen map[string]*chaosCall, rows map[string]chaosRow) {
	var all, gap, early time.Duration
	var calls, gaps, ended, silent, speechless int
	reasons, during := map[string]int{}, map[string]int{}
	var longest time.Duration
	for _, k := range seen {
		if k.answered.IsZero() || c.affected(k) != nil {
			continue
		}
		calls++
		all += k.hold
		switch {
		case k.byUs && c.withoutProviders(k):
			speechless++
			all -= k.hold - k.ended.Sub(k.answered)
		case k.byUs:
			ended++
			early += k.hold - k.ended.Sub(k.answered)
			reasons[rows[k.number].Reason]++
		}
		i := slices.IndexFunc(c.audio.streams, func(s *chaosStream) bool {
			return s.port == k.port && s.first.After(k.invited) && s.first.Before(k.end())
		})
		if i < 0 {
			silent++
			gap += k.end().Sub(k.answered)
			continue
		}
		seconds := map[int]bool{}
		for _, g := range c.audio.streams[i].gaps {
			for at := g.from; at.Before(g.from.Add(g.len)); at = at.Add(time.Second) {
				seconds[int(at.Sub(k.answered)/time.Second)] = true
			}
			during[c.during(g.from)]++
			longest = max(longest, g.len)
		}
		gaps += len(seconds)
		gap += time.Duration(len(seconds)) * time.Second
	}
	if calls == 0 {
		c.t.Fatal("no call was answered")
	}
	share := 100 * (1 - float64(gap+early)/float64(all))
	if share < 99.95 {
		c.t.Errorf("%.3f %% of the time of calls was undisturbed, want 99.95 %%", share)
	}
	c.note("%d calls of nodes without faults, %.0f min: %.3f %% undisturbed; %d s with a gap of %v, %d without audio, %d ended by the node (%v early): %v",
		calls, all.Minutes(), share, gaps, lateAudio, silent, ended, early.Round(time.Second), reasons)
	c.note("gaps during faults: %v; the longest lasted %v", during, longest.Round(time.Millisecond))
	c.note("%d more calls were ended by the agent while its only providers were down", speechless)
}

// withoutProviders says whether a call ended while the providers were down, or soon afterwards. Its agent has no others:
// it apologizes and hangs up.
func (c *chaos) withoutProviders(k *chaosCall) bool {
	return slices.ContainsFunc(c.faults, func(f chaosFault) bool {
		return f.name == providersDown && f.from.Before(k.ended) && k.ended.Before(f.to.Add(20*time.Second))
	})
}

// during returns the names of the faults at a time.
func (c *chaos) during(at time.Time) string {
	var all []string
	for _, f := range c.faults {
		if f.from.Before(at) && at.Before(f.to) {
			all = append(all, f.name)
		}
	}
	return cmp.Or(strings.Join(all, " and "), "none")
}

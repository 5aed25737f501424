package dashtest

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"time"

	callsapi "github.com/parley-voice/parley/api/calls"
	campaignsapi "github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/api/dashboard/live"
	"github.com/parley-voice/parley/api/recordings"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/campaigns/service"
	campaignstore "github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/idempotency"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
)

// setServices sets the services behind the dashboard, without carrier and providers.
func (h *Env) setServices(t *testing.T) {
	t.Helper()
	d, pool := h.Dashboard, h.DB.Pool
	d.Store = &store.Store{Pool: pool}
	key, err := store.SharedKey(t.Context(), d.Store.Pool, "links")
	if err != nil {
		t.Fatal(err)
	}
	bucket := &recording.Folder{Dir: t.TempDir()}
	d.Bucket = bucket
	d.Providers = func() []live.Provider {
		return []live.Provider{
			{Kind: "asr", Name: "deepgram", Active: 12, Limit: 100},
			{Kind: "llm", Name: "openai", Open: true},
			{Kind: "tts", Name: "cartesia", Open: true, Probing: true, Active: 1},
		}
	}
	d.Recordings = &recordings.Recordings{Calls: d.Store, Bucket: bucket, Key: func() []byte { return key }, PublicURL: h.URL}
	bodies, keys, listed := schema.NewSet(), &idempotency.Keys{Pool: pool}, &campaignstore.Store{Pool: pool}
	d.Calls = &callsapi.Calls{
		Admission: &admission.Controller{Pool: pool, Store: d.Store}, Store: d.Store, Keys: keys, Schemas: bodies,
		View: callview.View{Link: d.Recordings.Link}, Live: &control.Live{}, CursorKey: key,
	}
	d.Campaigns = &campaignsapi.Campaigns{
		Service: &service.Service{Pool: pool, Store: listed, Bucket: bucket, Markets: &marketstore.Store{}},
		Store:   listed, Keys: keys, Schemas: bodies, CursorKey: key,
	}
}

// furnishCalls adds a campaign with a list, an ended call with all details, and an active
// call.
func (h *Env) furnishCalls(t *testing.T, name string, ids map[string]string) {
	t.Helper()
	ctx := t.Context()
	h.Exec(t, `UPDATE organizations SET settings = settings || '{"market":"us"}' WHERE id = $1`, h.Acme)
	var list []json.RawMessage
	for _, row := range []map[string]any{
		{"phone": "+12125550123", "name": name, "variables": map[string]string{"who": name}},
		{"phone": name, "name": name},
		{"phone": "+12125550124", "timezone": name},
	} {
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, text)
	}
	st, err := h.Dashboard.Campaigns.Service.Create(ctx, h.Acme, service.Actor{Via: "api", Actor: name}, service.CreateRequest{
		Spec: campaigns.Spec{Name: name, Agent: name, CallsPerMinute: 20}, Rows: list, Attested: true,
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ids["campaigns"], ids["imports"] = st.Campaign.ID, st.Import.ID
	if err = h.Dashboard.Bucket.Put(ctx, "recordings/call_1.wav", strings.NewReader(silentWAV())); err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(map[string]any{"role": "caller", "text": name, "start": time.Second, "end": 2 * time.Second, "turn": 1})
	if err != nil {
		t.Fatal(err)
	}
	said, err := json.Marshal(map[string]any{"summary": name, name: name})
	if err != nil {
		t.Fatal(err)
	}
	h.Exec(t, "UPDATE calls SET cost_nano = 25100000, costs = $1 WHERE id = 'call_1'", cost(name))
	h.Exec(t, `UPDATE calls SET campaign_id = $1, recording_status = 'ready', recording_key = 'recordings/call_1.wav', created_at = now() - interval '70 s', dialed_at = now() - interval '69 s', answered_at = now() - interval '1 minute', ended_at = now(),
		disconnection_reason = 'callee_hangup', hangup_by = 'callee', sip_status = 200, sip_reason = $2, call_analysis = $3::jsonb, analysis_status = 'completed',
		metadata = $3::jsonb::json, variables = $3::jsonb::json, transfer = '{"type":"cold","to":"12025550177","status":"answered","bridged":true,"at":1795222586}', amd = '{"confidence":0.9,"evidence":["words"],"amd_ms":700}',
		quality = '{"codec":"PCMU","mos":4.2,"received":{"packets":3000,"lost":1,"jitter_ms":2.5},"sent":{"packets":3000,"lost":0,"jitter_ms":1},"round_trip_ms":40,"concealed_ms":20,"underruns":0,"ignored_packets":12}'
		WHERE id = 'call_1'`, ids["campaigns"], name, said)
	h.Exec(t, `INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id, ring_seconds, created_at, answered_at, name)
		SELECT 'call_2', org_id, call_type, 'ongoing', agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id, 45, now(), now(), name FROM calls WHERE id = 'call_1'`)
	for _, id := range []string{"call_1", "call_2"} {
		h.Exec(t, "INSERT INTO call_lines (call_id, n, item) VALUES ($1, 0, $2)", id, line)
		for n, turn := range []string{
			`{"turn":0,"metrics":{"tts_ms":90,"out_ms":12,"turn_ms":102},"ending":"answered","reason":"answered"}`,
			`{"turn":1,"metrics":{"jitter_ms":5,"vad_ms":180,"asr_ms":40,"eou_wait_ms":120,"llm_ms":320,"tts_ms":110,"out_ms":12,"turn_ms":787},"ending":"interrupted","reason":"sentence_ended","interrupted":true,"merged_from":2}`,
		} {
			h.Exec(t, "INSERT INTO call_turns (call_id, n, item) VALUES ($1, $2, $3)", id, n, turn)
		}
	}
	h.Exec(t, "INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, state) "+
		"VALUES ('att_1', 'call_1', $1, $2, $3, 'ended')", h.Acme, ids["trunks"], ids["subgroups"])
	ladder, err := json.Marshal([]callview.Rung{
		{At: time.Unix(1, 0), Out: true, Peer: "127.0.0.1:5080", Line: "INVITE sip:+12025550123@127.0.0.1:5080"},
		{At: time.Unix(1, 5e6), Peer: "127.0.0.1:5080", Line: "SIP/2.0 100 Trying"},
		{At: time.Unix(2, 0), Peer: "127.0.0.1:5080", Line: "SIP/2.0 486 " + name, Note: name},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Exec(t, "INSERT INTO call_signalling (call_id, attempt_id, org_id, messages) VALUES ('call_1', 'att_1', $2, $1)", ladder, h.Acme)
}

// silentWAV returns two seconds of silence: stereo, 8 kHz, 16 bits.
func silentWAV() string {
	const rate, seconds, frame = 8000, 2, 4
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, 36+rate*seconds*frame)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	for _, v := range []uint16{1, 2} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*frame)
	for _, v := range []uint16{frame, 16} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, rate*seconds*frame)
	return string(append(b, make([]byte, rate*seconds*frame)...))
}

// AddSales gives acme an agent "sales", published or not, a trunk "main" with subgroup
// "default", and market rules.
func (h *Env) AddSales(t *testing.T, market string, published bool) {
	t.Helper()
	ctx, q := t.Context(), h.DB.Pool
	engine, text := &apply.Engine{Provider: "fake"}, "Hello."
	err := apply.WithinTx(ctx, q, apply.Spec{Organizations: []apply.Organization{{Name: "acme", Agents: []apply.Agent{{
		Name: "sales", Published: &published, Greeting: &text, Prompt: &text, Speech: &apply.Speech{ASR: engine, LLM: engine, TTS: engine},
	}}}}}, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := agents.Find(ctx, q, h.Acme, "sales")
	if err != nil {
		t.Fatal(err)
	}
	trunk, err := trunks.Save(ctx, q, trunks.Trunk{
		OrgID: h.Acme, Name: "main",
		Proxy: "sip:127.0.0.1:5080;transport=udp", CallerNumbers: []string{"+12025550100"},
	})
	if err != nil {
		t.Fatal(err)
	}
	group, err := trunks.SaveSubgroup(ctx, q, trunks.Subgroup{
		OrgID: h.Acme, TrunkID: trunk, Name: "default", AllowedDestinations: []string{"1"}, ConcurrentCalls: 10, CallsPerMinute: 60,
	})
	if err == nil {
		err = trunks.Attach(ctx, q, h.Acme, group, []string{agent.ID})
	}
	if err == nil {
		_, err = q.Exec(ctx, `UPDATE organizations SET settings = settings || CASE WHEN $2::text = '' THEN '{}' ELSE jsonb_build_object('market', $2::text) END WHERE id = $1`, h.Acme, market)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Key creates an API key of acme.
func (h *Env) Key(t *testing.T) string {
	t.Helper()
	_, secret, err := apikeys.CreateKey(t.Context(), h.DB.Pool, apikeys.Key{OrgID: h.Acme})
	if err != nil {
		t.Fatal(err)
	}
	return string(secret)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/service"
	campaignstore "github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tts"
)

// pastOf furnishes the demo's organization with calls of the last two weeks, and with campaigns.
type pastOf struct {
	*server

	client *demo.Client
	orgID  string
	voice  string // name of the voice: espeak or fake
	sounds map[string]demo.Sound
	route  trunks.Route
	agents map[string]agents.Summary
}

// furnishDemo adds what the organization of the demo does not have yet. It may run while calls are made.
func furnishDemo(ctx context.Context, srv *server, client *demo.Client) error {
	p := pastOf{server: srv, client: client, voice: "fake", sounds: map[string]demo.Sound{}, agents: map[string]agents.Summary{}}
	var err error
	if p.orgID, err = apikeys.FindOrganization(ctx, srv.db.Pool, demo.Organization); err != nil {
		return err
	}
	var finished, running bool
	err = srv.db.Pool.QueryRow(ctx, `
		SELECT coalesce(bool_or(name = $2), false), coalesce(bool_or(name = $3), false) FROM campaigns WHERE org_id = $1`, p.orgID,
		demo.FinishedCampaign, demo.RunningCampaign).Scan(&finished, &running)
	if err != nil {
		return err
	}
	for _, number := range demo.Blocked() {
		if _, _, err = dnc.AddNumber(ctx, srv.db.Pool, p.orgID, number); err != nil {
			return err
		}
	}
	if !finished {
		if err = p.record(ctx); err == nil {
			err = p.addPast(context.WithoutCancel(ctx)) // all of it or nothing, unless the process is killed
		}
	}
	if err == nil && !running {
		err = p.startCampaign(ctx)
	}
	return err
}

// record stores one recording for each scene.
func (p *pastOf) record(ctx context.Context) error {
	var voices demo.Voices
	if _, err := exec.LookPath("espeak-ng"); err == nil {
		voices, p.voice = demo.Voices{Voice: tts.Espeak{}, Agent: "en-us+f3", Callee: "en-us+m3"}, "espeak"
	}
	for _, scene := range append(demo.Scenes(), demo.VoicemailScene()) {
		sound, err := voices.Record(ctx, scene)
		if err == nil {
			err = p.spool.Bucket.Put(ctx, sceneKey(scene.Name), bytes.NewReader(sound.WAV))
		}
		if err != nil {
			return err
		}
		sound.WAV = nil
		p.sounds[scene.Name] = sound
	}
	return nil
}

// sceneKey is the key of the recording of a scene, until each call of the scene has its own.
func sceneKey(scene string) string { return "recordings/demo-" + scene + ".wav" }

// shareRecordings gives each call a recording of its own, so that the recordings of other calls stay when it is erased.
// The calls of a scene share the bytes if the file system can do that.
func (p *pastOf) shareRecordings(ctx context.Context, history []demo.Past, calls []store.PastCall) error {
	for i, h := range history {
		if h.Scene == "" {
			continue
		}
		from, to := sceneKey(h.Scene), calls[i].RecordingKey
		if folder, ok := p.spool.Bucket.(*recording.Folder); ok && folder.Link(from, to) == nil {
			continue
		}
		if err := p.copyRecording(ctx, from, to); err != nil {
			return err
		}
	}
	for scene := range p.sounds {
		if err := p.spool.Bucket.Delete(ctx, sceneKey(scene)); err != nil {
			return err
		}
	}
	return nil
}

func (p *pastOf) copyRecording(ctx context.Context, from, to string) error {
	file, err := p.spool.Bucket.Open(ctx, from)
	if err != nil {
		return err
	}
	defer file.Close()
	return p.spool.Bucket.Put(ctx, to, file)
}

// addPast adds the finished campaign and all past calls.
func (p *pastOf) addPast(ctx context.Context) error {
	routes, err := trunks.Routes(ctx, p.db.Pool, p.orgID, "")
	if err != nil {
		return err
	}
	p.route = routes[0] // the demo has one
	all, err := agents.List(ctx, p.db.Pool, p.orgID)
	if err != nil {
		return err
	}
	for _, a := range all {
		p.agents[a.Name] = a
	}
	history := demo.History(time.Now())
	calls := make([]store.PastCall, len(history))
	for i, h := range history {
		if calls[i], err = p.call(h); err != nil {
			return err
		}
	}
	if err = p.shareRecordings(ctx, history, calls); err != nil {
		return err
	}
	if err = p.addFinished(ctx, history, calls); err != nil {
		return err
	}
	return store.AddPast(ctx, p.store, calls)
}

// addFinished adds the finished campaign, and sets the contacts of its calls.
func (p *pastOf) addFinished(ctx context.Context, history []demo.Past, calls []store.PastCall) error {
	var rows []json.RawMessage
	var attempts []campaignstore.PastAttempt
	var began time.Time
	for i, h := range history {
		if !h.Campaign {
			continue
		}
		row, err := json.Marshal(demo.Contact{Phone: h.To, Name: h.Name})
		if err != nil {
			return err
		}
		c := &calls[i]
		if rows = append(rows, row); began.IsZero() {
			began = c.CreatedAt.Add(-10 * time.Minute)
		}
		attempts = append(attempts, campaignstore.PastAttempt{
			Number: h.To, CallID: c.ID, Outcome: outcomeOf(c), Began: c.CreatedAt, Ended: c.EndedAt,
		})
	}
	past := &service.Service{
		Pool: p.db.Pool, Store: p.campaigns.Store, Bucket: p.campaigns.Bucket, Markets: p.campaigns.Markets, Registries: p.campaigns.Registries,
		Now: func() time.Time { return began },
	}
	st, err := past.Create(ctx, p.orgID, service.Actor{Via: campaigns.ByDashboard, Actor: demo.Operator}, service.CreateRequest{
		Spec: campaigns.Spec{Name: demo.FinishedCampaign, Agent: "clinic", CallsPerMinute: 5, Classification: "servicing"}, Rows: rows,
	}, nil, nil)
	if err != nil {
		return err
	}
	contacts, err := p.campaigns.Store.SavePast(ctx, st.Campaign, campaigns.ByDashboard, attempts)
	for i := range calls {
		if c := &calls[i]; contacts[c.ID] != "" {
			c.CampaignID, c.ContactID, c.ImportID = st.Campaign.ID, contacts[c.ID], st.Import.ID
		}
	}
	return err
}

// outcomeOf returns the outcome of a past call for its contact.
func outcomeOf(c *store.PastCall) retry.Outcome {
	switch {
	case c.AnsweredBy == "human":
		return retry.Answered
	case c.AnsweredBy != "":
		return retry.Voicemail
	default:
		return retry.Outcome(c.Reason)
	}
}

// call returns the record of a past call.
func (p *pastOf) call(h demo.Past) (store.PastCall, error) {
	agent, rate := p.agents[h.Agent], 0.0085
	c := store.PastCall{CostPerMinute: &rate, Call: control.Call{
		ID: control.NewID("call_", h.At), OrgID: p.orgID, Type: control.Phone, Status: control.Failed, AgentID: agent.ID, AgentName: agent.Name,
		AgentVersion: agent.Published, To: control.Digits(h.To), From: "12025550100", DialNumber: control.Digits(h.To),
		TrunkID: p.route.TrunkID, RouteID: p.route.ID, Attempt: 1, Name: h.Name, Metadata: map[string]any{}, Variables: map[string]any{},
		RingFor: 45 * time.Second, Voicemail: "hangup", CreatedAt: h.At, DialedAt: h.At.Add(400 * time.Millisecond),
		RingingAt: h.At.Add(time.Second), EndedAt: h.At.Add(time.Second + h.Rings), Reason: control.Reason(h.Outcome),
		RecordingStatus: control.RecordingNone, AnalysisStatus: "none",
	}}
	if h.Scene == "" {
		refuse(&c.Call)
		return c, nil
	}
	return c, p.answer(&c, h)
}

// refuse sets the response of the carrier to a call that nobody answered.
func refuse(c *control.Call) {
	c.HangupBy, c.SIPStatus, c.SIPReason = control.SideCallee, 486, "Busy Here"
	switch string(c.Reason) {
	case "no_answer":
		c.HangupBy, c.SIPStatus, c.SIPReason = control.SideSystem, 487, "Request Terminated"
	case "declined":
		c.SIPStatus, c.SIPReason = 603, "Decline"
	case "invalid_number":
		c.HangupBy, c.SIPStatus, c.SIPReason, c.RingingAt = control.SideCarrier, 404, "Not Found", time.Time{}
	}
}

// answer sets the conversation of an answered call: transcript, recording, response times, use of providers, analysis.
func (p *pastOf) answer(c *store.PastCall, h demo.Past) (err error) {
	sound, scene := p.sounds[h.Scene], demo.VoicemailScene()
	for _, s := range demo.Scenes() {
		if s.Name == h.Scene {
			scene = s
		}
	}
	c.Status, c.SIPStatus, c.SIPReason, c.HangupBy = control.Ended, http.StatusOK, "OK", control.SideAgent
	c.AnsweredAt, c.AnsweredBy = c.EndedAt, "human"
	c.EndedAt = c.AnsweredAt.Add(sound.Length)
	c.RecordingStatus, c.RecordingKey, c.AnalysisStatus = control.RecordingReady, "recordings/"+c.ID+".wav", "completed"
	if c.Reason == control.Reason(pipeline.CallerHungUp) {
		c.HangupBy = control.SideCallee
	}
	if c.Reason == control.Reason(pipeline.VoicemailReached) {
		c.AnsweredBy = "voicemail"
	}
	characters := 0
	for _, l := range sound.Lines {
		if c.Lines = append(c.Lines, l); l.Role == pipeline.RoleAgent {
			characters += len(l.Text)
		}
	}
	c.Turns = pastTurns(h.Response)
	answers := len(c.Turns)
	usage := []pipeline.EngineUsage{
		{Serves: "asr", Provider: "fake", Requests: 1, Seconds: sound.Length.Seconds()},
		{Serves: "llm", Provider: "fake", Requests: answers, PromptTokens: 300 * answers, CompletionTokens: characters / 4},
		{Serves: "tts", Provider: p.voice, Requests: answers, Characters: characters},
	}
	if c.Usage, err = json.Marshal(usage); err != nil {
		return err
	}
	c.Analysis, err = json.Marshal(map[string]any{
		"summary": scene.Summary, "success": scene.Success, "sentiment": scene.Sentiment, "opt_out": false,
		"in_voicemail": c.AnsweredBy == "voicemail",
	})
	if err != nil {
		return err
	}
	codec, packets, lost, jitter := "PCMU", int64(sound.Length/(20*time.Millisecond)), int64(0), 10*(4.5-h.MOS)
	direction := control.DirectionQuality{Packets: &packets, Lost: &lost, JitterMS: &jitter, MOS: &h.MOS}
	c.Quality, err = json.Marshal(control.AudioQuality{Codec: &codec, MOS: &h.MOS, Received: direction, Sent: direction})
	return err
}

// pastTurns returns the greeting and the turns with these response times.
func pastTurns(response []time.Duration) []pipeline.Turn {
	const ms = time.Millisecond
	greeting := []pipeline.Span{{Phase: pipeline.PhaseTTS, For: 90 * ms}, {Phase: pipeline.PhaseOut, For: 12 * ms}}
	all := []pipeline.Turn{{Ending: pipeline.Answered, Reason: "answered", Spans: greeting}}
	for i, total := range response {
		spans := []pipeline.Span{
			{Phase: pipeline.PhaseJitter, For: 20 * ms},
			{Phase: pipeline.PhaseVAD, For: 180 * ms},
			{Phase: pipeline.PhaseASR, For: 30 * ms},
			{Phase: pipeline.PhaseEOUWait, For: 90 * ms},
			{Phase: pipeline.PhaseTTS, For: total / 8},
			{Phase: pipeline.PhaseOut, For: 12 * ms},
		}
		rest := total
		for _, s := range spans {
			rest -= s.For
		}
		spans = slices.Insert(spans, 4, pipeline.Span{Phase: pipeline.PhaseLLM, For: rest})
		all = append(all, pipeline.Turn{Number: i + 1, Ending: pipeline.Answered, Reason: "sentence_ended", Spans: spans})
	}
	return all
}

// startCampaign creates the running campaign through the API. It calls people only during the legal hours of their place.
func (p *pastOf) startCampaign(ctx context.Context) error {
	var answer struct {
		Status   string            `json:"status"`
		Blockers []json.RawMessage `json:"blockers"`
	}
	err := p.client.Do(ctx, http.MethodPost, "/v1/campaigns", map[string]any{
		"name": demo.RunningCampaign, "agent_id": "survey", "calls_per_minute": 2, "classification": "servicing",
		"planned_calls": demo.RunningContacts(), "attestation": map[string]any{"confirmed": true},
	}, &answer)
	if err == nil && answer.Status != string(campaigns.Running) {
		err = fmt.Errorf("the campaign is %s: %s", answer.Status, answer.Blockers)
	}
	return err
}

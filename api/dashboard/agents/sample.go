package agents

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
)

// options returns the choices of a select. It always has the value that is saved.
func options(texts *ui.Texts, all []agents.Choice, serves, saved string) []ui.Option {
	var list []ui.Option
	for _, c := range all {
		if c.Serves != serves {
			continue
		}
		o := ui.Option{Value: c.Name, Label: c.Name, Off: !c.Configured && c.Name != saved}
		if c.Title != "" && !strings.EqualFold(c.Title, c.Name) {
			o.Label += " (" + c.Title + ")"
		}
		if !c.Configured {
			o.Label = texts.T("agents.provider.no_key", "provider", o.Label)
		}
		list = append(list, o)
	}
	if saved != "" && !slices.ContainsFunc(list, func(o ui.Option) bool { return o.Value == saved }) {
		list = append(list, ui.Option{Value: saved, Label: texts.T("agents.provider.not_configured", "saved", saved)})
	}
	if saved == "" {
		list = append([]ui.Option{{Label: texts.T("agents.provider.choose")}}, list...)
	}
	return list
}

// A limiter limits how often and how many at once operators may use a provider for a test.
type limiter struct {
	perMinute, perPerson, inAll int // starts a minute and person; running at once for a person, and in all

	mu      sync.Mutex
	since   time.Time
	started map[string]int // in the minute from since
	running map[string]int
	all     int
}

// begin admits a test of a person. The caller must call end if err is nil.
func (p *limiter) begin(texts *ui.Texts, who string, now time.Time) (end func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started == nil || now.Sub(p.since) >= time.Minute {
		p.since, p.started = now, map[string]int{}
	}
	switch {
	case p.started[who] >= p.perMinute:
		wait := p.since.Add(time.Minute).Sub(now).Round(time.Second)
		return nil, ui.Invalid("", texts.T("agents.limit.per_minute", "seconds", int(max(1, wait/time.Second))))
	case p.running[who] >= p.perPerson:
		return nil, ui.Invalid("", texts.T("agents.limit.per_person"))
	case p.all >= p.inAll:
		return nil, ui.Invalid("", texts.T("agents.limit.total"))
	}
	if p.running == nil {
		p.running = map[string]int{}
	}
	p.started[who]++
	p.running[who]++
	p.all++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.running[who]--; p.running[who] == 0 {
			delete(p.running, who)
		}
	}, nil
}

const (
	sampleTimeout  = 20 * time.Second
	sampleExpiry   = time.Hour
	maxSampleBytes = 16 << 20 // of all samples in the cache
)

// samples are the latest samples of voices.
type samples struct {
	limiter limiter

	mu    sync.Mutex
	since time.Time // when the cache was emptied last
	bytes int
	by    map[string][]byte // WAV files
}

func newSamples() *samples { return &samples{limiter: limiter{perMinute: 12, perPerson: 2, inAll: 4}} }

func (s *samples) find(key string, now time.Time) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.since) > sampleExpiry {
		s.since, s.bytes, s.by = now, 0, map[string][]byte{}
	}
	return s.by[key]
}

func (s *samples) keep(key string, wav []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+len(wav) > maxSampleBytes {
		s.bytes, s.by = 0, map[string][]byte{}
	}
	s.bytes += len(wav)
	s.by[key] = wav
}

// sampleText is the sentence of a sample in the language of the agent.
func sampleText(language string) string {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	return cmp.Or(map[string]string{
		"de": "Guten Tag, vielen Dank für Ihren Anruf. Wie kann ich Ihnen helfen?",
		"es": "Hola, gracias por llamar. ¿En qué puedo ayudarle?",
		"fr": "Bonjour, merci de votre appel. Comment puis-je vous aider ?",
		"pt": "Olá, obrigado por ligar. Como posso ajudar?",
		"ru": "Здравствуйте, спасибо за звонок. Чем я могу помочь?",
	}[base], "Hello, thank you for calling. How can I help you today?")
}

// sample answers with the sound of a voice as the form has it. Errors are plain text.
func (a Agents) sample(r *ui.Request) error {
	wav, err := a.sampleOf(r)
	h := r.Writer.Header()
	if _, refused := errors.AsType[*ui.InvalidError](err); err != nil && !refused {
		return err
	}
	if err != nil {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		r.Writer.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprint(r.Writer, err) // the browser may have left
		return nil
	}
	h.Set("Content-Type", "audio/wav")
	_, _ = r.Writer.Write(wav) // likewise
	return nil
}

func (a Agents) sampleOf(r *ui.Request) ([]byte, error) {
	if a.Tester == nil {
		return nil, ui.Invalid("", r.Texts.T("agents.sample.invalid.no_voice"))
	}
	var d agents.Definition
	if id := r.Text("agent"); id != "" { // with the options of the agent, such as its speed
		agent, err := agents.ByID(r.Context(), r.DB(), r.Org(), id)
		if err != nil {
			return nil, err
		}
		if agent.Draft.Speech.TTS.Provider == r.Text("provider") {
			d.Speech.TTS = agent.Draft.Speech.TTS
		}
	}
	d.Language = r.Text("language")
	e := &d.Speech.TTS
	e.Provider, e.Model, e.Voice, e.OrgID, e.Fallback = r.Text("provider"), r.Text("model"), r.Text("voice"), r.Org(), nil
	if len(e.Provider)+len(e.Model)+len(e.Voice)+len(d.Language) > 1000 {
		return nil, ui.Invalid("", r.Texts.T("agents.sample.invalid.too_long"))
	}
	key := e.Key() + " " + d.Language
	if wav := a.samples.find(key, time.Now()); wav != nil {
		return wav, nil
	}
	end, err := a.samples.limiter.begin(r.Texts, r.Session.ID, time.Now())
	if err != nil {
		return nil, err
	}
	defer end()
	wav, err := a.Tester.Sample(r.Context(), r.Org(), d, sampleText(d.Language))
	if err != nil {
		return nil, ui.Invalid("", err)
	}
	a.samples.keep(key, wav)
	return wav, nil
}

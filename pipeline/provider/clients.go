package provider

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

// Clients holds the clients of providers by the names of their endpoints. It does not change while it is in use.
type Clients struct {
	Recognizers map[string]pipeline.Recognizer
	Models      map[string]pipeline.Model
	Voices      map[string]pipeline.Voice
	// Invalid lists the names of an organization's endpoints with invalid settings. They have no
	// clients, and the operator's endpoints are not used in their place.
	Invalid []string
	// Organizations holds the clients of organizations' own endpoints by organization ID. They
	// have no Organizations.
	Organizations map[string]*Clients
}

// A ClientSource returns the clients in use. They may be replaced while calls are in
// progress: a call uses the clients that it began with.
type ClientSource interface{ Current() *Clients }

// Current implements ClientSource: c is never replaced.
func (c *Clients) Current() *Clients { return c }

// Resolve returns the engines with the OrgID whose endpoint is used. It clears the OrgID of an engine or fallback if
// the organization has no endpoint of its own with that name, so that the operator's endpoint is used.
func (c *Clients) Resolve(e pipeline.Engines) pipeline.Engines {
	return e.Change(func(serves string, one *pipeline.Engine) { *one = c.resolve(serves, *one) })
}

func (c *Clients) resolve(serves string, e pipeline.Engine) pipeline.Engine {
	own, ok := c.Organizations[e.OrgID]
	switch {
	case !ok:
	case slices.Contains(own.Invalid, e.Provider):
	case serves == "asr":
		_, ok = own.Recognizers[e.Provider]
	case serves == "llm":
		_, ok = own.Models[e.Provider]
	default:
		_, ok = own.Voices[e.Provider]
	}
	if !ok {
		e.OrgID = ""
	}
	return e
}

// of returns the clients of the operator, or of an organization.
func (c *Clients) of(orgID string) *Clients {
	if orgID == "" {
		return c
	}
	if own := c.Organizations[orgID]; own != nil {
		return own
	}
	return &Clients{}
}

// resolveChain returns an engine and its fallbacks, each as Resolve does.
func (c *Clients) resolveChain(serves string, e pipeline.Engine) []pipeline.Engine {
	all := e.Chain()
	for i, one := range all {
		all[i] = c.resolve(serves, one)
	}
	return all
}

// Check returns an error if an engine or fallback names a provider that is not configured, or has an option that its
// provider refuses.
func (c *Clients) Check(e pipeline.Engines) error {
	_, err := c.check(e)
	return err
}

// Warnings returns the options of engines that the providers ignore or that are unknown.
func (c *Clients) Warnings(e pipeline.Engines) []string {
	warnings, _ := c.check(e) // Check returns the error
	return warnings
}

func (c *Clients) check(e pipeline.Engines) (warnings []string, err error) {
	asr, err1 := checkEngine(c, "asr", e.ASR, func(c *Clients) map[string]pipeline.Recognizer { return c.Recognizers })
	llm, err2 := c.checkModel(e.LLM)
	tts, err3 := c.checkVoice(e.TTS)
	return slices.Concat(asr, llm, tts), errors.Join(err1, err2, err3)
}

func (c *Clients) checkModel(e pipeline.Engine) (warnings []string, err error) {
	return checkEngine(c, "llm", e, func(c *Clients) map[string]pipeline.Model { return c.Models })
}

// CheckModel returns what is wrong with the engine of a model, as Check does.
func (c *Clients) CheckModel(e pipeline.Engine) error {
	_, err := c.checkModel(e)
	return err
}

// CheckVoice returns what is wrong with the engine of a voice, as Check does.
func (c *Clients) CheckVoice(e pipeline.Engine) error {
	_, err := c.checkVoice(e)
	return err
}

func (c *Clients) checkVoice(e pipeline.Engine) (warnings []string, err error) {
	return checkEngine(c, "tts", e, func(c *Clients) map[string]pipeline.Voice { return c.Voices })
}

func checkEngine[T any](c *Clients, serves string, e pipeline.Engine, clients func(*Clients) map[string]T) (warnings []string, err error) {
	var errs []error
	at := "speech." + serves
	for _, one := range e.Chain() {
		used := c.resolve(serves, one)
		p, ok := clients(c.of(used.OrgID))[used.Provider]
		switch {
		case slices.Contains(c.of(used.OrgID).Invalid, used.Provider):
			errs = append(errs, fmt.Errorf("%s.provider: the organization's endpoint %q has invalid settings", at, used.Provider))
		case !ok:
			accepted := slices.Concat(slices.Collect(maps.Keys(clients(c))), slices.Collect(maps.Keys(clients(c.of(one.OrgID)))))
			slices.Sort(accepted)
			errs = append(errs, fmt.Errorf("%s.provider: %q is not a configured provider; accepted: %s",
				at, one.Provider, strings.Join(slices.Compact(accepted), ", ")))
		}
		if ruled, ok := any(p).(pipeline.RuledProvider); ok {
			ignored, refused := ruled.OptionRules().Check(one.Options)
			for _, w := range ignored {
				warnings = append(warnings, at+"."+w)
			}
			if refused != nil {
				errs = append(errs, fmt.Errorf("%s.%w", at, refused))
			}
		}
		at += ".fallback"
	}
	return warnings, errors.Join(errs...)
}

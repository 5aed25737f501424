package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/media"
)

// withWeb adds the settings of web calls.
func withWeb(all map[string]Setting) map[string]Setting {
	maps.Copy(all, map[string]Setting{
		"PARLEY_WEBRTC_UDP_PORT": {"a port, 0 for a free one, or off", setPort(func(c *Config) *int { return &c.WebRTC.UDP })},
		"PARLEY_WEBRTC_TCP_PORT": {"a port, 0 for a free one, or off", setPort(func(c *Config) *int { return &c.WebRTC.TCP })},
		"PARLEY_STUN_URLS":       {"stun:HOST:PORT, several with commas between", setICE(func(c *Config) *[]string { return &c.WebRTC.STUN }, "stun:", "stuns:")},
		"PARLEY_TURN_URLS":       {"turn:HOST:PORT?transport=udp or turns:…, several with commas between", setICE(func(c *Config) *[]string { return &c.WebRTC.TURN }, "turn:", "turns:")},
		"PARLEY_TURN_SECRET":     {"the static-auth-secret of the TURN servers", func(c *Config, v string) error { c.WebRTC.TURNSecret = media.Secret(v); return nil }},
		"PARLEY_TALK_AGENTS":     {"ORGANIZATION/AGENT, several with commas between, each name of an agent once", setTalk},
	})
	return all
}

func setTalk(c *Config, v string) error {
	c.Talk = nil
	for part := range strings.SplitSeq(v, ",") {
		org, name, ok := strings.Cut(strings.TrimSpace(part), "/")
		if !ok || org == "" || name == "" {
			return fmt.Errorf("%q is no agent of an organization", part)
		}
		if slices.ContainsFunc(c.Talk, func(a TalkAgent) bool { return a.Name == name }) {
			return fmt.Errorf("%q is named twice", name)
		}
		c.Talk = append(c.Talk, TalkAgent{org, name})
	}
	return nil
}

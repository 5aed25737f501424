package ui

import (
	"cmp"
	"errors"
	"html/template"
	"strings"

	"github.com/parley-voice/parley/control"
)

// reasons are the end reasons of calls.
var reasons = map[string]string{ //nolint:gochecknoglobals // read-only table
	"callee_hangup": "The callee hung up.", "agent_hangup": "The agent hung up.", "api_hangup": "Ended from the dashboard or API.",
	"transferred": "Transferred.", "voicemail_reached": "Voicemail answered; the agent hung up.",
	"voicemail_dropped": "Voicemail answered; the agent left a message.", "ivr_reached": "A phone menu answered; the agent hung up.",
	"inactivity": "Ended after prolonged silence.", "max_duration": "Maximum duration reached.",
	"media_timeout": "Audio stopped arriving.", "agent_error": "A provider of the agent failed and did not recover.",
	"shutdown": "The server was stopped.", "node_lost": "The server failed during the call.", "never_joined": "No one joined.",
	"no_answer": "No answer.", "busy": "Busy.", "declined": "The callee declined the call.",
	"invalid_number": "The number does not exist.", "blocked": "The carrier blocked the call.",
	"route_error": "The carrier failed or was unreachable.", "auth_failed": "The carrier rejected the trunk’s credentials.",
	"congestion": "The carrier had no free channel.", "cancelled": "Canceled before it was answered.",
	"queue_expired": "Waited too long in the queue.", "dnc_blocked": "The number is on a do-not-call list.",
	"provider_not_configured": "The agent uses a provider without configuration on this server. No one was called. " +
		"Publish the agent with another provider.",
	"caller_number_unavailable": "The caller number was removed from its subgroup or trunk, or is no longer lent to the organization.",
	"frequency_blocked":         "The number reached its call frequency cap.",
	"window_closed":             "Calling hours ended before the call could be placed.",
	"internal_error":            "Internal error; see the server log.",
	"unknown_after_restart":     "The server failed while dialing; the result is unknown.",
	"redirect_refused":          "The carrier sent a redirect (3xx); redirects are not followed.",
}

// EndReason describes why a call ended.
func EndReason(code string) string { return labelOf(reasons, code) }

// endings are the ways a turn ends.
var endings = map[string]string{ //nolint:gochecknoglobals // read-only table
	"answered": "answered", "interrupted": "interrupted by the caller", "failed": "provider failed", "silent_by_policy": "no reply needed",
}

// TurnOutcome describes how a turn ended.
func TurnOutcome(code string) string { return labelOf(endings, code) }

// causes are the reasons why the end of a turn was detected.
var causes = map[string]string{ //nolint:gochecknoglobals // read-only table
	"recognizer": "speech-to-text reported the end of turn", "classifier": "the classifier reported the end of turn",
	"recognizer_silent": "speech-to-text sent nothing for long", "keys": "keys pressed", "typed": "words typed",
	"sentence_ended":  "complete sentence",
	"clause_complete": "complete clause", "short_answer": "short answer to the question", "answered": "question answered",
	"unfinished": "unfinished sentence", "trails_off": "caller trailed off", "filler": "pause after a filler word",
	"closed": "caller said goodbye", "number_complete": "complete number", "number_open": "number may continue",
	"address_complete": "complete address", "address_open": "address may continue", "spelling": "caller is spelling",
	"no_words": "no words recognized",
}

// EndOfTurnCause describes why a turn counted as finished.
func EndOfTurnCause(code string) string { return labelOf(causes, code) }

// labelOf returns the label of a code, or else the code with spaces for underscores.
func labelOf(table map[string]string, code string) string {
	if text, ok := table[code]; ok {
		return text
	}
	return strings.ReplaceAll(code, "_", " ")
}

// sides are the parties that can end a call.
var sides = map[string]string{ //nolint:gochecknoglobals // read-only table
	"callee": "the callee", "agent": "the agent", "api": "the API or the dashboard", "system": "the service", "carrier": "the carrier",
}

// patiences are the accepted patiences of an agent.
var patiences = map[string]string{ //nolint:gochecknoglobals // read-only table
	"quick":    "quick: shorter waits, more interruptions of callers who pause",
	"balanced": "balanced",
	"careful":  "careful: longer waits, fewer interruptions",
}

// machines are an agent's actions when a machine answers.
var machines = map[string]string{ //nolint:gochecknoglobals // read-only table
	"hangup":        "hang up",
	"leave_message": "leave a message",
	"continue":      "continue the conversation",
}

// PatienceLabel describes how long an agent waits before it answers; empty means balanced.
func PatienceLabel(code string) string { return labelOf(patiences, cmp.Or(code, "balanced")) }

// MachineAction describes what an agent does when a machine answers.
func MachineAction(code string) string { return labelOf(machines, code) }

// EndedBy describes who ended a call.
func EndedBy(code string) string { return labelOf(sides, code) }

// FormatNumber formats the digits of a telephone number.
func FormatNumber(digits string) string {
	if len(digits) == 11 && digits[0] == '1' {
		return "+1 " + digits[1:4] + " " + digits[4:7] + " " + digits[7:]
	}
	if len(digits) >= 11 && len(digits) <= 15 && digits[0] != '0' && digits[0] != '8' && strings.Trim(digits, "0123456789") == "" {
		return "+" + digits
	}
	return digits
}

// JoinNames joins names as HTML; each keeps the direction of its own script.
func JoinNames(all []string) template.HTML {
	apart := make([]string, len(all))
	for i, name := range all {
		apart[i] = "<bdi>" + template.HTMLEscapeString(name) + "</bdi>"
	}
	return template.HTML(strings.Join(apart, ", ")) //nolint:gosec // escaped
}

// ErrorText returns the message of an error for its user.
func ErrorText(err error) string {
	if e, ok := errors.AsType[*control.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

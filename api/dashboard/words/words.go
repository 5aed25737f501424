// Package words says in plain English what the codes of calls mean.
package words

import (
	"errors"
	"html/template"
	"strings"

	"github.com/parley-voice/parley/control"
)

// reasons are why calls are over.
var reasons = map[string]string{ //nolint:gochecknoglobals // read-only table
	"callee_hangup": "The other party hung up.", "agent_hangup": "The agent hung up.", "api_hangup": "It was ended here or by the API.",
	"transferred": "It was handed over to somebody else.", "voicemail_reached": "A machine answered, and the agent hung up.",
	"voicemail_dropped": "A machine answered, and a message was left.", "ivr_reached": "A menu answered, and the agent hung up.",
	"inactivity": "Nobody said anything for long.", "max_duration": "It had reached its longest duration.",
	"media_timeout": "No sound came through any more.", "agent_error": "A provider of the agent failed, and did not come back.",
	"shutdown": "The server was stopped.", "node_lost": "The server was lost while it was on.", "never_joined": "Nobody joined it.",
	"no_answer": "Nobody answered.", "busy": "The line was busy.", "declined": "The other party declined it.",
	"invalid_number": "There is no such number.", "blocked": "The carrier would not take it.",
	"route_error": "The carrier failed, or could not be reached.", "auth_failed": "The carrier did not accept our name and password.",
	"congestion": "The carrier had no line left.", "cancelled": "It was cancelled before anybody answered.",
	"queue_expired": "It had waited in the queue for too long.", "dnc_blocked": "Its number is on a do-not-call list.",
	"caller_number_unavailable": "The number that it was to show was taken from its subgroup, trunk or grant.",
	"frequency_blocked":         "Its number had been called too often.", "window_closed": "It could not be dialled before the calling hours were over.",
	"internal_error": "Something went wrong here; the log of the server says what.", "unknown_after_restart": "The server was lost while it was dialled; what came of it is not known.",
	"redirect_refused": "The carrier wanted it sent elsewhere, which is not done.",
}

// Reason says why a call is over.
func Reason(code string) string { return or(reasons, code) }

// endings are how turns end.
var endings = map[string]string{ //nolint:gochecknoglobals // read-only table
	"answered": "answered", "interrupted": "the caller spoke into the answer", "failed": "a provider broke", "silent_by_policy": "nothing was to be said",
}

// Ending says how a turn ended.
func Ending(code string) string { return or(endings, code) }

// causes are why turns were taken for finished when they were.
var causes = map[string]string{ //nolint:gochecknoglobals // read-only table
	"recognizer": "the recognizer said that the caller had finished", "classifier": "the classifier said that the caller had finished",
	"recognizer_silent": "the recognizer said nothing for long", "keys": "keys were pressed", "sentence_ended": "a sentence was whole",
	"clause_complete": "what was said could stand by itself", "short_answer": "a short answer, as the question asked for", "answered": "the question was answered",
	"unfinished": "the caller stopped within a sentence", "trails_off": "the caller trailed off", "filler": "the caller paused on a filler",
	"closed": "the caller said that it was all", "number_complete": "a number was whole", "number_open": "a number may have gone on",
	"address_complete": "an address was whole", "address_open": "an address may have gone on", "spelling": "something was being spelled",
	"no_words": "no word was understood",
}

// Cause says why a turn was taken for finished.
func Cause(code string) string { return or(causes, code) }

// or is what a table says of a code, else the code with its words apart.
func or(table map[string]string, code string) string {
	if text, ok := table[code]; ok {
		return text
	}
	return strings.ReplaceAll(code, "_", " ")
}

// Sides are who ends calls.
var sides = map[string]string{ //nolint:gochecknoglobals // read-only table
	"callee": "the other party", "agent": "the agent", "api": "the API or the dashboard", "system": "the service", "carrier": "the carrier",
}

// machines are what agents do when a machine answers.
var machines = map[string]string{"hangup": "hang up", "leave_message": "leave a message", "continue": "talk on"} //nolint:gochecknoglobals // read-only table

// Machine says what an agent does when a machine answers.
func Machine(code string) string { return or(machines, code) }

// Side says who ended a call.
func Side(code string) string { return or(sides, code) }

// Number writes the digits of a number as numbers are written.
func Number(digits string) string {
	if len(digits) == 11 && digits[0] == '1' {
		return "+1 " + digits[1:4] + " " + digits[4:7] + " " + digits[7:]
	}
	if len(digits) >= 11 && len(digits) <= 15 && digits[0] != '0' && digits[0] != '8' && strings.Trim(digits, "0123456789") == "" {
		return "+" + digits
	}
	return digits
}

// Names writes names one after another, for a page. Each goes the way of its own script.
func Names(all []string) template.HTML {
	apart := make([]string, len(all))
	for i, name := range all {
		apart[i] = "<bdi>" + template.HTMLEscapeString(name) + "</bdi>"
	}
	return template.HTML(strings.Join(apart, ", ")) //nolint:gosec // escaped
}

// Refusal is what is told of an error that its causer may read.
func Refusal(err error) string {
	if e, ok := errors.AsType[*control.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

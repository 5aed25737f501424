package corpus

import "strings"

// Marks of the places where a pause may stand.
const (
	midMark      = "/"
	completeMark = "|"
)

// heldOutTemplates are templates that nothing is tuned on: those of the published seed.
func heldOutTemplates() []string {
	return []string{
		"we have a reservation under / {name} | for the whole weekend",
		"is the {city} office / still open on {day} | or do i have to wait",
		"i forgot the / password for my account | and the mail never arrived",
		"you sent the {color} {thing} to my / {relative} | instead of me",
		"could somebody call me / back about the {thing} | before {hour}",
		"there is a problem with the / {thing} from {city} | it makes a strange noise",
		"my card number ends in / {digits} | and it expires in may",
		"we would rather / come on {day} | if that is possible",
		"the driver said that / he left it with my {relative} | but nobody saw him",
		"i want to talk to / somebody in sales | about a larger order",
		"how long does it take to / get the {thing} to {city} | with the normal post",
		"the last time i ordered from / you everything was fine | so i am surprised",
		"please cancel the / order of the {color} {thing} | i found it cheaper",
		"do you know whether / {name} works on {day} | or only in the morning",
		"it does not matter which / color it is | as long as it fits",
		"we are {count} people and / one of us can not walk | so we need a lift",
		"i have to change the / address on my bill | because we moved to {city}",
		"would it be / possible to get the {thing} | a little sooner",
		"i saw your / advertisement in the paper | and want to know more",
		"let me speak to the / person in charge | i have waited long enough",
	}
}

// templates are what callers say. Each has places for pauses of either kind:
// before a complete mark stands what could have been all.
func templates() []string {
	return []string{
		// Bookings.
		"i would like a / table for {count} | on {day} if you have one",
		"can i book a / room for {count} nights | starting on {day}",
		"i need an appointment with / doctor {name} | as early as possible",
		"please move my / booking to {day} | because i have to work",
		"we want to / cancel the / {thing} | and get our money back | as soon as possible",
		"do you have / anything free on {day} | or maybe on {day}",
		"i want to reserve the / {color} one | for my {relative}",
		"is there a / flight to {city} | that leaves after {hour}",
		// Addresses and dictation.
		"my address is / {number} / {street} street | in {city} | next to the school",
		"send it to / {number} / {street} road | and leave it at the door | behind the plants",
		"my phone number is / {digits} / {digits} | but call me after {hour}",
		"the order number is / {digits} {digit} {digit} | and i ordered it on {day}",
		"my name is / {name} | and i called you on {day}",
		"the reference starts with / {digits} | i can not read the rest",
		"you can reach me under / {digits} / {digits} | most of the time | but not on {day}",
		// Complaints.
		"the {thing} that / you sent me is broken | and nobody answers my mails",
		"i have been / waiting / since {day} | which is far too long | and i want to complain",
		"i paid for / {count} of them | but only one came | and it is broken",
		"your driver left my / {thing} in the rain | and now it is ruined",
		"this is the / third time i call | about the same {thing}",
		"nobody told me about / the fee | when i signed the contract",
		"the {thing} stopped working on / {day} | right after the update",
		"i was charged twice for / the {thing} | so please check it | and call me back",
		// Small talk.
		"i was talking to my / {relative} about it | just the other day",
		"the weather in / {city} is terrible | so we stay at home",
		"we are going to / {city} on / {day} | with my {relative} | by train",
		"my {relative} really / likes the {color} one | more than i do",
		"i used to / live in {city} | when i was younger",
		"it was a / long day at work | and i am quite tired",
		// Questions and orders.
		"how much is / the {color} {thing} | with the delivery",
		"can you tell / me when you close | on {day} or {day}",
		"i would like to / order {count} of / those | and pay by card | if that is possible",
		"could you put / me through to {name} | when they are back",
		"i am looking for / a new {thing} | that is not too expensive",
		"does the {thing} come with / a warranty | or do i pay extra",
		"i think the / {color} one is better | but i am not sure",
		"we need / {count} more of them | before {day} comes",
		"what happens if / i return the {thing} | after {count} weeks",
		"i will be / there at {hour} | unless the train is late",
		"tell {name} that / i agree with the price | and want to go on",
	}
}

// words are what can stand in one place of a template.
func words(name string) []string {
	var all string
	switch name {
	case "count":
		all = "two three four five six seven eight nine ten"
	case "number":
		all = "twelve fifteen twenty forty sixty eighty ninety"
	case "digit":
		all = "zero one two three four five six seven eight nine"
	case "day":
		all = "monday tuesday wednesday thursday friday saturday sunday tomorrow"
	case "hour":
		all = "six seven eight nine ten eleven noon"
	case "name":
		all = "miller garcia novak weber rossi tanaka silva kim okafor"
	case "street":
		all = "market church station garden river baker mill"
	case "city":
		all = "boston lisbon prague oslo madrid vienna denver turin"
	case "thing":
		all = "table phone chair lamp printer heater bicycle kettle camera"
	case "color":
		all = "red blue green black white yellow grey"
	case "relative":
		all = "wife husband sister brother mother father neighbour"
	}
	return strings.Fields(all)
}

// Backchannels tell that one listens, and no more.
func Backchannels() []string { return strings.Fields("mhm yeah okay right") }

// Commands are words that ask for silence.
func Commands() []string { return strings.Fields("stop wait") }

// contents are what somebody says into an answer to be heard.
func contents() []string {
	return []string{
		"no i meant the {color} {thing}", "actually make that {count}", "not on {day} but on {day}",
		"that is the wrong {thing}", "i said {city} not {city}", "but i already paid for the {thing}",
	}
}

// Content is a sentence that is said into an answer.
func (s *Speaker) Content() string {
	for {
		if text := s.fill(pick(s.rnd, contents())); !s.said[text] {
			s.said[text] = true
			return text
		}
	}
}

package optout

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A rule is an English pattern of a request not to be called again. Words are separated by one
// space. A dot that stands alone is the end of a sentence.
type rule struct {
	form *regexp.Regexp
	// not lists words that change the meaning of the pattern if they precede it.
	not []string
}

// rules returns the English rules. They avoid false reports, even if they miss some requests: the callee can also
// press a key, and the model has a tool for opt-outs.
func rules() []rule {
	const (
		me      = `(?:me|us|this number|this phone|this house|my (?:phone|number|cell|house|home|mobile|line)|our number|here)`
		number  = `(?:my|this|our) (?:phone |cell |mobile |telephone )?number`
		call    = `(?:call|phone|ring|dial|contact|telephone|text)`
		calling = `(?:calling|phoning|ringing|dialing|dialling|contacting|bothering|harassing|robocalling|spamming)`
		again   = `(?: back)?(?: on)?(?: again| anymore| any more| ever| please| no more| any longer| at all)`
		list    = `(?:list|lists|database|system|records|registry|file|files|books|roster|call list|calling list)`
		calls   = `(?:phone |sales |marketing |more |of your |of these |further |such |these |your |robo |any |anymore )*calls`
		over    = `(?: \.| and | or | you | i | im | so | because | for | or else | all | every | at | on | before | ok | okay | thanks| thank |$)`
	)
	imperative := []string{
		"you", "they", "he", "she", "we", "i", "who", "why", "people", "that", "would", "could", "will", "might", "may", "to", "when", "and they",
	}
	var all []rule
	add := func(not []string, forms ...string) {
		for _, f := range forms {
			all = append(all, rule{regexp.MustCompile(`(?:^|(\S+) )` + f), not})
		}
	}
	add([]string{"not", "dont", "never", "didnt", "wont"},
		`(?:stop|quit|cease) `+calling+` `+me+`(?:`+again+`|`+over+`)`,
		`(?:stop|quit) (?:these|the|your|all these|all your|with the) (?:\w+ )?calls`,
		`stop calling(?: \.|$| please| now)`,
	)
	add(imperative,
		`(?:do not|dont|never) (?:you )?(?:ever )?(?:again )?`+call+` `+me+`(?:`+again+`| back| \.|$)`,
		`(?:do not|dont) (?:ever )?`+call+`(?: again| anymore| any more| no more)`,
	)
	add(
		nil,
		`(?:told|asked|tell|telling|asking|warned) (?:you|u|them|him|her)(?: guys| people| all| before| already| not once)* (?:not to|to not|to stop|to quit) (?:`+call+`|`+calling+`)`,
		`i (?:do not|dont|no longer|did not|didnt) (?:want|wish|like|agree) (?:to be|being) (?:called|contacted|phoned)`+`(?: by (?:you|this|your)| again| anymore| any more| at all| ever| \.|$)`,
		`i (?:do not|dont|no longer) (?:want|wish|like) (?:you|you guys|you people|anyone|anybody)(?: all)? (?:to `+call+`|calling|contacting) `+me+`(?:`+again+`| \.|$)`,
		`i (?:do not|dont|no longer) (?:want|wish|need) (?:to get |to receive |getting |receiving )?(?:any|anymore|more|these|your|further|such) `+calls,
		`i (?:do not|dont|never) (?:ever )?want to hear from (?:you|you guys|you people|your company) (?:again|anymore|any more|ever)`,
		`(?:put|add|place|get) (?:me|us|my name|`+number+`|this number) (?:on|to|onto) (?:your|the|that|a) (?:company |internal |national )?(?:do not call|dnc|no call)`,
		`(?:i am|im|we are|were|`+number+` is|my name is) (?:already |also )?(?:on|in) (?:the|your|a) (?:national |federal |state )?(?:do not call|dnc|no call)`,
		`(?:i want|id like|i would like|i need|i wish|want|like|please let me) to (?:opt out|unsubscribe|be removed|be taken off|get off your list|get off this list|get off the list)`,
		`opt me out`,
		`i (?:am )?(?:hereby )?(?:revoke|revoking|withdraw|withdrawing) (?:my |any |all )?consent`,
	)
	add(
		[]string{"not", "dont", "never", "you", "did", "they", "already", "didnt", "wont", "he", "she"},
		`(?:(?:can|could|would|will) (?:you|u) (?:please |just )?)?(?:take|get|remove|delete|strike|drop|cross|scratch|pull|erase) (?:me|us|my name|my info|my information|my contact|my details|my contact information|`+number+
			`) (?:off of|off|from|out of|out) (?:of )?(?:your|the|this|that|these|those|all|any|every)(?: of)?(?: \w+){0,4}? `+list,
		`(?:(?:can|could|would|will) (?:you|u) (?:please |just )?)?(?:remove|delete|erase|lose|forget) `+number+`(?: please| now| forever| permanently| \.|$)`,
		`(?:remove|unsubscribe) (?:me|us)(?: please| now| \.|$)`,
		`take (?:me|us) off(?: please| now| \.|$)`,
	)
	whole := func(forms ...string) {
		for _, f := range forms {
			all = append(
				all,
				rule{
					regexp.MustCompile(
						`(?:^|\. )(?:please |no |and |just |hey |ok |okay |um |uh )*` + f + `(?: please| ok| okay| thanks| thank you)*(?: \.|$)`,
					),
					nil,
				},
			)
		}
	}
	whole(
		`(?:do not|dont) (?:ever )?call(?: back)?`, `(?:opt out|unsubscribe)`, `no more (?:phone |sales |marketing )?calls`,
		`never again`+` call me`, `no more calling(?: me)?`,
	)
	return all
}

// English holds the compiled rules. All calls may share one English. The zero value is ready to use.
type English struct {
	once  sync.Once
	rules []rule
}

// signs returns letters of which every text that matches a rule has at least one. Searching for them takes less than a hundredth
// of the time that the rules take.
func signs() []string {
	return []string{
		"call", "phon", "ring", "dial", "contact", "bother", "harass", "spam", "text", "hear from", "opt ", "unsubscribe", "remove",
		"taken off", "take me off", "take us off", "get off", "consent", "dnc", "list", "database", "system", "record", "registry",
		"file", "book", "roster", "number",
	}
}

func hasSign(text string) bool {
	return slices.ContainsFunc(signs(), func(sign string) bool { return strings.Contains(text, sign) })
}

// find returns the words of a request in text. It reports false if text has none.
func (e *English) find(text string) (string, bool) {
	if !hasSign(text) {
		return "", false
	}
	return e.match(text)
}

func (e *English) match(text string) (string, bool) {
	e.once.Do(func() { e.rules = rules() })
	for _, r := range e.rules {
		for _, at := range r.form.FindAllStringSubmatchIndex(text, -1) {
			from := at[0]
			if len(at) > 2 && at[2] >= 0 {
				if slices.Contains(r.not, text[at[2]:at[3]]) {
					continue
				}
				from = at[3]
			}
			return strings.Trim(text[from:at[1]], " ."), true
		}
	}
	return "", false
}

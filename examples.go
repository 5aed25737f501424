package main

// examples shows command lines in the help of a command.
var examples = map[string][]string{ //nolint:gochecknoglobals // read-only table
	"": {
		"parley demo                               a call on this machine",
		"parley doctor                             what is missing for calls",
		"parley apply --dry-run -f parley.yaml     what a file would change",
		"parley call place --agent sales +12025550123",
		"parley help campaign                      the commands for campaigns",
	},
	"init": {
		"parley init",
		"parley init --market us --public calls.example.com --carrier telnyx --providers deepgram,openai,elevenlabs --database built-in",
	},
	"doctor":          {"parley doctor", "parley doctor --stun stun.example.com:3478 --json"},
	"apply":           {"parley apply --dry-run -f parley.yaml", "parley apply -f parley.yaml"},
	"export":          {"parley export > parley.yaml"},
	"key create":      {"parley key create --org acme --name crm --scope calls --expires 90d"},
	"agent diff":      {"parley agent diff --org acme sales"},
	"call place":      {"parley call place --agent sales --var first_name=Ada +12025550123"},
	"call list":       {"parley call list --status failed --limit 20", "parley call list --campaign cmp_01M8C0K2AZ7B0QAYQH362Y6JGG --json"},
	"logs":            {"parley logs call_01M8C0K2AZ7B0QAYQH362Y6JGG", "parley logs --sip call_01M8C0K2AZ7B0QAYQH362Y6JGG"},
	"campaign create": {"parley campaign create -f contacts.csv --agent sales --pace 20 --attest"},
	"campaign list":   {"parley campaign list --status running"},
	"providers check": {"parley providers check", "parley providers check openai --speak"},
	"plan":            {"parley plan --calls 1000 --contacts 500000"},
	"completion":      {"source <(parley completion bash)", "parley completion fish > ~/.config/fish/completions/parley.fish"},
	"docs build":      {"parley docs build --dir /srv/www/parley"},
	"erase":           {"parley erase --org acme --number +12025550123"},
	"trunk profiles":  {"parley trunk profiles", "parley trunk profiles twilio"},
	"market install":  {"parley market install --org acme us"},
}

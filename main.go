// Command parley places phone calls and talks on them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // outdated zone data of the host must not shift legal calling hours

	"github.com/alecthomas/kong"

	bench "github.com/parley-voice/parley/bench/benchcli"
	"github.com/parley-voice/parley/campaigns/campaigncli"
	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/tracing"
)

// version is set by the linker.
var version = "dev"

// commands defines the command line. Each command is in its own file.
type commands struct {
	Config string `help:"Read settings from FILE; environment variables override them." placeholder:"FILE"`

	Init       admincli.Init   `cmd:"" help:"Ask a few questions and write the first settings and operator's file." group:"Server"`
	Serve      serveCmd        `cmd:"" help:"Run the server until SIGTERM." group:"Server"`
	Demo       demoCmd         `cmd:"" help:"Place one SIP call on this machine, show it, and keep serving." group:"Server"`
	Doctor     admincli.Doctor `cmd:"" help:"Check settings, ports, database, bucket, trunks and providers; exits with 1 if it finds an error." group:"Server"`
	Health     healthCmd       `cmd:"" help:"Check the server on this machine; exits with 1 if it is not healthy." group:"Server"`
	Plan       planCmd         `cmd:"" help:"Estimate the machines and the database for a number of calls." group:"Server"`
	Docs       docsCmd         `cmd:"" help:"Write the documentation as static HTML files." group:"Server"`
	Version    versionCmd      `cmd:"" help:"Print the version." group:"Server"`
	Completion completionCmd   `cmd:"" help:"Print a script that completes the command line in a shell." group:"Server"`

	Apply    applyCmd          `cmd:"" help:"Create or update organizations, trunks, agents and more from a YAML file." group:"Settings of organizations"`
	Export   admincli.Export   `cmd:"" help:"Print the YAML file that would create the present settings, without secrets." group:"Settings of organizations"`
	Key      keyCmd            `cmd:"" help:"Manage API keys." group:"Settings of organizations"`
	Operator admincli.Operator `cmd:"" help:"Manage dashboard operators." group:"Settings of organizations"`
	Agent    admincli.Agent    `cmd:"" help:"Manage agents." group:"Settings of organizations"`
	Trunk    admincli.Trunk    `cmd:"" help:"List carrier profiles, or show one." group:"Settings of organizations"`
	Webhook  admincli.Webhook  `cmd:"" help:"Manage webhook endpoints and deliveries." group:"Settings of organizations"`
	Links    linksCmd          `cmd:"" help:"Manage links to recordings." group:"Settings of organizations"`
	Secrets  admincli.Secrets  `cmd:"" help:"Manage the key that encrypts secrets." group:"Settings of organizations"`

	Call     callCmd              `cmd:"" help:"Place, show and end calls." group:"Calls and campaigns"`
	Logs     campaigncli.Logs     `cmd:"" help:"Print what happened in a call, in order." group:"Calls and campaigns"`
	Campaign campaigncli.Campaign `cmd:"" help:"Manage campaigns." group:"Calls and campaigns"`
	DNC      campaigncli.DNC      `cmd:"" name:"dnc" help:"Manage do-not-call lists." group:"Calls and campaigns"`
	Market   campaigncli.Market   `cmd:"" help:"Manage market rules." group:"Calls and campaigns"`
	Simulate campaigncli.Simulate `cmd:"" help:"Simulate campaigns over years and check every call against the rules." group:"Calls and campaigns"`
	Replay   replayCmd            `cmd:"" help:"Replay the turn log of a call through the turn machine." group:"Calls and campaigns"`

	Providers providersCmd      `cmd:"" help:"List and check providers of speech and models." group:"Operation"`
	Failover  admincli.Failover `cmd:"" help:"Show and release calls held after a database failover." group:"Operation"`
	Audit     admincli.Audit    `cmd:"" help:"Print the audit log of an organization as lines of JSON." group:"Operation"`
	Erase     admincli.Erase    `cmd:"" help:"Erase calls: transcripts, recordings and deliveries." group:"Operation"`
	Bench     bench.Bench       `cmd:"" help:"Run benchmarks." group:"Operation"`
}

// env is the environment of a command.
type env struct {
	context.Context //nolint:containedctx // the context of the process, an argument of every command
	out, errs       io.Writer
	environ         []string
	file            string
	close           func() // closes the database; nil if no command opened it
	level           slog.LevelVar
}

// adminEnv returns the dependencies of administration commands.
func (e *env) adminEnv() (*admincli.Env, error) {
	c, d, calls, err := e.openStores()
	if err != nil {
		return nil, err
	}
	checks, err := e.providerChecks(c, d.Pool)
	if err != nil {
		return nil, err
	}
	return &admincli.Env{
		Pool: d.Pool, AllowInsecure: c.AllowInsecureWebhooks, Bucket: calls, In: os.Stdin, Out: e.out, Errs: e.errs,
		Providers: checks, SealKeys: c.SealKey, NumberZone: numberZone(),
	}, nil
}

// readOnly returns the dependencies of commands that change nothing.
func (e *env) readOnly() (*admincli.ReadOnly, error) {
	c, err := e.config()
	if err != nil {
		return nil, err
	}
	d, err := e.readDatabase(c)
	if err != nil {
		return nil, err
	}
	e.close = d.Close
	return &admincli.ReadOnly{Pool: d.Pool, Out: e.out}, nil
}

// openStores opens the database and the bucket. They stay open until the command ends.
func (e *env) openStores() (c config.Config, d *db.DB, files recording.Bucket, err error) {
	if c, err = e.config(); err != nil {
		return c, nil, nil, err
	}
	if files, err = bucket(c); err != nil {
		return c, nil, nil, err
	}
	if d, err = e.database(c); err != nil {
		return c, nil, nil, err
	}
	e.close = d.Close
	return c, d, files, nil
}

func (e *env) config() (config.Config, error) {
	c, err := config.Load(e.file, e.environ)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w; %s", err, asServiceUser)
	}
	if err != nil {
		return c, configError{err}
	}
	return c, nil
}

const asServiceUser = "run the command as the user of the service: sudo -u parley parley …"

// configError is an error in the settings. It causes the exit code 2.
type configError struct{ error }

// log returns a logger that writes lines of text at the given level. setLevel changes the level later.
func (e *env) log(level string) *slog.Logger {
	e.setLevel(level)
	return slog.New(slog.NewTextHandler(e.errs, &slog.HandlerOptions{Level: &e.level}))
}

// serverLog returns the log of a server. Its format is text or JSON.
func (e *env) serverLog(c config.Config) *slog.Logger {
	log := e.log(c.LogLevel)
	if c.LogFormat == "json" {
		options := &slog.HandlerOptions{Level: &e.level}
		if c.Traces.URL != "" {
			options.ReplaceAttr = tracing.LogAttr(c.Traces.Sample)
		}
		log = slog.New(slog.NewJSONHandler(e.errs, options))
	}
	return log
}

// setLevel sets the level of the log. level must be valid; config.Load checks it.
func (e *env) setLevel(level string) {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level))
	e.level.Set(l)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(&env{Context: ctx, out: os.Stdout, errs: os.Stderr, environ: os.Environ()}, os.Args[1:])
	stop()
	os.Exit(code)
}

// negative matches a negative number. The parser would treat it as a flag.
var negative = regexp.MustCompile(`^-\d+$`)

// arguments rewrites a command line for the parser. An empty command line and the word help become --help, and --version
// becomes version. A negative number is joined to the flag before it.
func arguments(args []string) []string {
	if len(args) == 0 {
		return []string{"--help"}
	}
	if args[0] == "help" {
		return append(slices.Clone(args[1:]), "--help")
	}
	if args[0] == "--version" {
		return append([]string{"version"}, args[1:]...)
	}
	var all []string
	for _, a := range args {
		if last := len(all) - 1; last >= 0 && negative.MatchString(a) && strings.HasPrefix(all[last], "--") && !strings.Contains(all[last], "=") {
			all[last] += "=" + a
			continue
		}
		all = append(all, a)
	}
	return all
}

// parser returns the parser of the command line. exit is called after --help.
func (e *env) parser(c *commands, exit func(code int)) (*kong.Kong, error) {
	parser, err := kong.New(
		c, kong.Name("parley"), kong.Description("Outbound phone calls handled by a voice agent."),
		kong.Writers(e.out, e.errs), kong.Exit(exit), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.BindTo(e.Context, (*context.Context)(nil)),
		kong.BindSingletonProvider(e.adminEnv), kong.BindSingletonProvider(e.readOnly),
		kong.BindSingletonProvider(e.campaignEnv), kong.BindSingletonProvider(e.apiClient),
		kong.BindSingletonProvider(e.signaling), kong.BindSingletonProvider(e.terminal), kong.BindSingletonProvider(e.bench),
		kong.BindSingletonProvider(e.console), kong.BindSingletonProvider(e.examination),
	)
	if err == nil {
		walkCommands(parser.Model.Node, "", func(n *kong.Node, path string) {
			if lines := examples[path]; lines != nil {
				n.Detail = "Examples:\n\n    " + strings.Join(lines, "\n    ")
			}
		})
	}
	return parser, err
}

// parseError returns the text of an error of the parser. If a command is missing, it lists all possible ones.
func parseError(err error) string {
	text := strings.ReplaceAll(err.Error(), "expected value value", "expected a value")
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok || wrong.Context.Selected() == nil {
		return text + "; parley help lists the commands"
	}
	at := wrong.Context.Selected()
	help := "parley help" + strings.TrimPrefix(at.FullPath(), "parley")
	if !strings.HasPrefix(text, "expected one of") {
		return fmt.Sprintf("%s; %s explains the command", text, help)
	}
	var names []string
	for _, child := range at.Children {
		names = append(names, child.Name)
	}
	return fmt.Sprintf("%s needs one of the commands %s; %s explains them", at.FullPath(), strings.Join(names, ", "), help)
}

// run executes one command line and returns its exit code: 0 on success, 1 on failure, 2 if the
// command line or the settings are invalid.
func run(e *env, args []string) int {
	var c commands
	exit := -1
	parser, err := e.parser(&c, func(code int) { exit = code })
	if err != nil {
		fmt.Fprintln(e.errs, "parley:", err)
		return 2
	}
	ctx, err := parser.Parse(arguments(args))
	if exit >= 0 { // --help was printed
		return exit
	}
	if err != nil {
		fmt.Fprintln(e.errs, "parley:", parseError(err))
		return 2
	}
	e.file = c.Config
	err = ctx.Run(e)
	if e.close != nil {
		e.close()
	}
	var wrong configError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(e.errs, "parley:", err)
		return 2
	case err != nil && !errors.Is(err, context.Canceled):
		fmt.Fprintln(e.errs, "parley:", err)
		return 1
	default:
		return 0
	}
}

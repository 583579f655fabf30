import { parseCommand } from '../arguments.ts';
import type { Command } from '../command.ts';
import { runService } from '../workers/run-service.ts';

export const command: Command = {
  help: `Usage: annals serve

Migrates the database to the current schema, runs the service, and prints its base URL when
it is ready. On SIGTERM or SIGINT (^C) it finishes the requests in progress and exits; on a
second signal it exits at once.

Settings are environment variables:
  PORT, HOST                   8080, 127.0.0.1; PORT=0 chooses a free port
  DATABASE_URL                 PostgreSQL 15 or later; without it, an embedded one
  ANNALS_DATA_DIR              the folder of the embedded one; ./data
  ANNALS_SECRET_KEY            32 bytes in base64, a list rotates
  ANNALS_BASE_URL              the public address
  ANNALS_CORS_ORIGINS          *; origins whose pages may call, or none
  ANNALS_HSTS                  host; off, or subdomains too, for browsers and HTTPS
  ANNALS_CONSOLE_INSECURE      true: people may sign in over plain HTTP
  ANNALS_OIDC_ISSUER, ANNALS_OIDC_CLIENT_ID, ANNALS_OIDC_CLIENT_SECRET,
  ANNALS_OIDC_CLIENT_SECRET_FILE, ANNALS_OIDC_RULES, ANNALS_OIDC_SCOPE
                               people sign in with a company's account
  ANNALS_REDIRECT_SCHEMES      cursor,vscode; of programs that sign in
  ANNALS_TRUSTED_PROXIES       loopback; proxies whose X-Forwarded-* headers count
  ANNALS_TENANT_RATE           requests a second of one tenant; no default
  ANNALS_RECORDER_PORT         a port on which applications record changes
  ANNALS_RECORDER_MAPPING      the file of the recorder's mapping
  ANNALS_METRICS_PORT          a port with GET /metrics for Prometheus
  ANNALS_PROOF_KEY_FILE        the key that seals histories: annals proof key
  ANNALS_DELIVERIES            on; off sends nothing that subscriptions want
  ANNALS_DELIVERY_ALLOW        private addresses of targets, by tenant
  ANNALS_S3_UNCONDITIONAL      stores without If-None-Match
  ANNALS_WORKERS               1; processes that answer, max for one a core
  LOG_LEVEL                    info; JSON lines on stderr
  OTEL_EXPORTER_OTLP_ENDPOINT  a collector of traces
  ANNALS_SHARED_PROVIDER_TOKEN, ANNALS_COMPLETION_MODEL,
  ANNALS_COMPLETION_MAX_TOKENS, ANNALS_COMPLETION_DRAIN, OPENAI_BASE_URL,
  ANTHROPIC_BASE_URL, GOOGLE_BASE_URL, ANNALS_SELF_HOSTED_ALLOW,
  ANNALS_MODELS_FILE, ANNALS_PRICES_FILE, SMTP_URL, MAIL_FROM
                               for completions, agents and e-mails

docs/reference.md explains each setting, and docs/operations.md how to run the service.

Example:
  PORT=3000 annals serve`,

  async run(args, io) {
    parseCommand('serve', { args, options: {} });
    return await runService(io, async () => (await import('../serve.ts')).serveUntilStopped);
  },
};

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Counts } from '../recording/counts.ts';

const launcher = join(import.meta.dirname, '../../bin/annals.js');

export interface Bench {
  readonly tenant: string;
  readonly service: string;
  readonly recorder: string;
  /** Basic, of a client with every scope. */
  readonly authorization: string;
  readonly answers: Counts;
  /** The part of the run: `before`, `full` or `room again`. */
  phase(): string;
  isOver(): boolean;
  pause(milliseconds: number): Promise<void>;
}

/** Calls of everything that the service has, each again and again until the run is over. */
export class ServiceCalls {
  /** Ids of documents whose writing or import was acknowledged. */
  readonly acknowledged: string[] = [];
  readonly #bench: Bench;
  #token = '';

  constructor(bench: Bench) {
    this.#bench = bench;
  }

  /** Gets a token, and makes the type of the documents and the agent. */
  async prepare(): Promise<void> {
    const { tenant } = this.#bench;
    await this.#renewToken();
    await this.#send('type', 'POST', `/schema/${tenant}/custom-entities`, { id: 'NOTE', name: { en: 'Note' } });
    await this.#send('agent', 'PUT', `/ai-service/${tenant}/agentic/agents/guide`, {
      id: 'guide',
      name: { en: 'Guide' },
      enabled: true,
      userPrompt: 'Help.',
      llmConfig: { provider: 'shared' },
    });
  }

  /** `environment` is that of `annals import`. */
  async run(environment: NodeJS.ProcessEnv): Promise<void> {
    const { tenant, recorder } = this.#bench;
    const notes = `/schema/${tenant}/custom-entities/NOTE/instances`;
    const configurations = `/configuration/${tenant}/configurations`;
    const messages = [{ role: 'USER', content: 'Hello' }];
    let turn = 0;
    await Promise.all([
      this.#again(20, async () => {
        const id = randomUUID();
        const status = await this.#send('document, write', 'POST', notes, { id, note: 'note '.repeat(100) });
        if (status === 201) this.acknowledged.push(id);
      }),
      this.#again(500, async () => {
        turn += 1;
        const body = [{ key: `note${turn}`, value: `${turn} ${'x'.repeat(500)}` }];
        await this.#send('configuration, write', 'POST', configurations, body);
      }),
      this.#again(100, () => this.#send('documents, read', 'GET', `${notes}?pageSize=20`)),
      this.#again(100, () => this.#send('history, read', 'GET', `/changelog/${tenant}/changelogs?q=entity:NOTE`)),
      this.#again(250, () => this.#send('configuration, read', 'GET', configurations)),
      this.#again(500, () => this.#send('usage, read', 'GET', `/usage/${tenant}`)),
      this.#again(500, () => this.#renewToken()),
      this.#again(300, () => this.#send('completion', 'POST', `/ai-service/${tenant}/completions`, { messages })),
      this.#again(300, () => {
        const body = { agentId: 'guide', message: 'Hello' };
        return this.#send('chat', 'POST', `/ai-service/${tenant}/agentic/chat`, body);
      }),
      this.#again(500, () => this.#send('ready', 'GET', '/health/ready')),
      this.#again(500, () => this.#send('recorder ready', 'GET', '/health/ready', undefined, recorder)),
      this.#again(2_000, () => this.#import(environment)),
    ]);
  }

  /** The total of the history, and the sums of the usage. Nothing else may go on. */
  async sums(): Promise<{ total: number; entries: number; inputTokens: number; outputTokens: number }> {
    const { service, tenant } = this.#bench;
    await this.#renewToken();
    const get = async (path: string): Promise<unknown> => {
      const answer = await fetch(service + path, { headers: { authorization: `Bearer ${this.#token}` } });
      return await answer.json();
    };
    const { totalElements: total } = (await get(`/changelog/${tenant}/changelogs?size=1`)) as { totalElements: number };
    const days = (await get(`/usage/${tenant}`)) as { entries: number; inputTokens: number; outputTokens: number }[];
    const sum = (of: (day: (typeof days)[number]) => number) => days.reduce((so, day) => so + of(day), 0);
    return {
      total,
      entries: sum(({ entries }) => entries),
      inputTokens: sum(({ inputTokens }) => inputTokens),
      outputTokens: sum(({ outputTokens }) => outputTokens),
    };
  }

  async #again(pause: number, turn: () => Promise<unknown>): Promise<void> {
    while (!this.#bench.isOver()) {
      await turn();
      await this.#bench.pause(pause);
    }
  }

  async #send(name: string, method: string, path: string, body?: object, to = this.#bench.service): Promise<number> {
    const { answers, phase } = this.#bench;
    const during = phase();
    const headers = {
      authorization: `Bearer ${this.#token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const answer = await fetch(to + path, { method, headers, body: JSON.stringify(body) }).catch(() => undefined);
    const told = await answer?.text().catch(() => 'the answer was cut');
    const isFault = answer === undefined || answer.status >= 400;
    const detail = isFault ? ` ${told}, Retry-After: ${answer?.headers.get('retry-after')}` : '';
    answers.add(`${during}: ${name}: ${answer?.status ?? 'no answer'}${detail}`);
    return answer?.status ?? 0;
  }

  async #renewToken(): Promise<void> {
    const { service, authorization, answers, phase } = this.#bench;
    const body = new URLSearchParams({ grant_type: 'client_credentials' });
    const init = { method: 'POST', headers: { authorization }, body };
    const answer = await fetch(`${service}/oauth/token`, init).catch(() => undefined);
    const told = await answer?.text().catch(() => 'the answer was cut');
    const isGranted = answer?.status === 200;
    answers.add(`${phase()}: token: ${answer?.status ?? 'no answer'}${isGranted ? '' : ` ${told}`}`);
    if (isGranted) this.#token = (JSON.parse(told ?? '') as { access_token: string }).access_token;
  }

  async #import(environment: NodeJS.ProcessEnv): Promise<void> {
    const { answers, phase, tenant } = this.#bench;
    const during = phase();
    const ids = Array.from({ length: 50 }, () => randomUUID());
    const at = new Date().toISOString();
    const lines = ids.map((id) => JSON.stringify({ op: 'insert', entity: 'line', entityId: id, at, after: { id } }));
    const child = spawn(process.execPath, [launcher, 'import', '--tenant', tenant, '-'], { env: environment });
    child.stdout.resume();
    child.stdin.on('error', () => {});
    child.stdin.end(lines.join('\n'));
    const [told, code] = await Promise.all([text(child.stderr), new Promise((done) => child.once('exit', done))]);
    answers.add(`${during}: import: exit ${code}${code === 0 ? '' : ` ${told.trim().split('\n').at(-1)}`}`);
    if (code === 0) this.acknowledged.push(...ids);
  }
}

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { tokenOf } from '../access-token.ts';
import { connect, start, type World } from './world.ts';

/** What another tenant saw, in milliseconds. */
export interface Seen {
  reads: number;
  median: number;
  p99: number;
  longest: number;
  /** How old the oldest change was that was not folded yet: of the tenant that is captured, and of the other. */
  foldAges: { captured: number; other: number };
}

/** Another tenant of the same installation: it reads its history four times a second, and writes a configuration value twice a second. */
export class Bystander {
  readonly #of: World;
  readonly #tenant = `other${randomBytes(3).toString('hex')}`;
  #service: ReturnType<typeof start> | undefined;
  #url = '';
  #headers: Record<string, string> = {};
  #times: number[] = [];
  #foldAges = { captured: 0, other: 0 };
  #isOver = false;
  #work: Promise<unknown> = Promise.resolve();

  constructor(of: World) {
    this.#of = of;
  }

  async begin(): Promise<void> {
    const service = start(['serve'], this.#of, { PORT: '0' });
    this.#service = service;
    this.#url = String(await service.ready).trim();
    const db = createDatabase(createPool(this.#of.annals, { maximum: 1 }));
    await createTenant(db, this.#tenant);
    const scope = 'changelog.changelog_read configuration.configuration_manage';
    const client = await createClient(db, { tenant: this.#tenant, scope, name: 'Other' });
    await db.destroy();
    const token = await tokenOf(this.#url, client);
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    this.#work = Promise.all([this.#read(), this.#write(), this.#watchFolds()]);
  }

  /** The figures since the last call. */
  take(): Seen {
    const times = this.#times.sort((one, other) => one - other);
    const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
    const seen = {
      reads: times.length,
      median: at(0.5),
      p99: at(0.99),
      longest: at(1),
      foldAges: this.#foldAges,
    };
    this.#times = [];
    this.#foldAges = { captured: 0, other: 0 };
    return seen;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#work;
    await this.#service?.kill('SIGTERM');
  }

  async #read(): Promise<void> {
    for (; !this.#isOver; await sleep(250)) {
      const began = performance.now();
      const answer = await fetch(`${this.#url}/changelog/${this.#tenant}/changelogs`, { headers: this.#headers });
      await answer.arrayBuffer();
      if (!answer.ok) throw new Error(`a read was answered with ${answer.status}`);
      this.#times.push(performance.now() - began);
    }
  }

  async #write(): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      const answer = await fetch(`${this.#url}/configuration/${this.#tenant}/configurations`, {
        method: 'POST',
        headers: this.#headers,
        body: JSON.stringify([{ key: `note${turn}`, value: `${turn}` }]),
      });
      await answer.arrayBuffer();
      if (!answer.ok) throw new Error(`a write was answered with ${answer.status}`);
      await sleep(500);
    }
  }

  async #watchFolds(): Promise<void> {
    const client = await connect(this.#of.annals);
    const waiting = new Map<string, { delta: number; since: number }[]>();
    for (; !this.#isOver; await sleep(250)) {
      const { rows } = await client.query<{ tenant: string; oldest: number; newest: number }>(
        'select tenant, min(delta)::float8 as oldest, max(delta)::float8 as newest from change_delta group by 1',
      );
      for (const { tenant, oldest, newest } of rows) {
        const known = (waiting.get(tenant) ?? []).filter(({ delta }) => delta >= oldest);
        if (newest > (known.at(-1)?.delta ?? -1)) known.push({ delta: newest, since: performance.now() });
        waiting.set(tenant, known);
        const name = tenant === this.#tenant ? 'other' : 'captured';
        const age = performance.now() - (known[0]?.since ?? performance.now());
        this.#foldAges[name] = Math.max(this.#foldAges[name], age);
      }
    }
    await client.end();
  }
}

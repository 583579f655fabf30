import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { requestLimit } from '../../src/core/fairness/work.ts';
import { defaultTimes } from '../../src/desk/completions/service.ts';
import { maxHeadTime, maxRequestTime } from '../../src/http/http-server.ts';
import { maxClientSilence } from '../../src/http/slow-clients.ts';
import { makeAgent } from './attacks/own-agent.ts';
import { type OwnModel, startModel, streamTokens } from './attacks/own-model.ts';
import { fillWithHugeInstances } from './huge-instances.ts';
import { openWorld, type Service, type World } from './world.ts';

// Limits that take a minute or more, with their real values: what comes shortly before each one, and beyond it. All at the same time.
const { values: settings } = parseArgs({ options: { longest: { type: 'string', default: '600' } } });
const tenant = 'patient';
const bytesOfPage = 40_000_000;

const wholeAnswer = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
});

const wrongSecret = 'grant_type=client_credentials&client_id=nobody&client_secret=none';
const headOfWrongSecret =
  'POST /oauth/token HTTP/1.1\r\nHost: bench\r\nContent-Type: application/x-www-form-urlencoded\r\n' +
  `Content-Length: ${wrongSecret.length}\r\nConnection: close\r\n\r\n`;

interface Trial {
  readonly limit: string;
  /** Milliseconds. */
  readonly value: number;
  /** Milliseconds of the side that fits. */
  readonly below: number;
  /** Milliseconds after the limit at which the service notices at the latest, on a busy machine. */
  readonly late: number;
  readonly expected: readonly [below: string, beyond: string];
  /** Takes so long as it is told, or for ever, and resolves with what came. */
  readonly attempt: (milliseconds: number, side: number) => Promise<string>;
}

const world = await openWorld();
const models: OwnModel[] = [];
try {
  const service = await world.startService();
  const client = await world.makeTenant(tenant);
  await fillWithHugeInstances(world.db, tenant, { instances: bytesOfPage / 1_000_000, bytes: 1_000_000 });
  const token = await service.tokenOf(client);
  const trials = trialsOf(world, service, token).filter(({ value }) => value <= Number(settings.longest) * 1_000);
  console.log('| limit | s | takes s | comes | after s | holds |\n|---|---|---|---|---|---|');
  const sides = trials.flatMap((trial) => [lineOf(trial, 0), lineOf(trial, 1)]);
  await Promise.all(sides.map(async (line) => console.log(await line)));
  await service.stop();
} finally {
  for (const model of models) model.close();
  await world.close();
}

function trialsOf({ databaseUrl }: World, { baseUrl }: Service, token: string): Trial[] {
  const call = (path: string, { body, ...options }: { method?: string; body?: string } = {}) =>
    fetch(`${baseUrl}${path}`, {
      ...options,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
    });

  async function chat(id: string, path: string, answer: (response: ServerResponse) => void): Promise<string> {
    const model = await startModel(answer);
    models.push(model);
    await makeAgent({ tenant, call }, id, model.url);
    const body = JSON.stringify({ agentId: id, message: 'Take your time.' });
    const response = await call(`/ai-service/${tenant}/agentic/${path}`, { method: 'POST', body });
    const text = await response.text();
    if (path === 'chat') return told(response.status, text);
    return text.includes('event: done') ? 'the whole stream' : `an event: error, ${told(response.status, text)}`;
  }

  const { silence, total } = defaultTimes.provider;
  return [
    {
      limit: "Time until an answer's headers are sent",
      value: requestLimit,
      below: requestLimit - 10_000,
      late: 5_000,
      expected: ['204', '503 service_unavailable'],
      async attempt(milliseconds, side) {
        const id = `h${side + 1}`;
        const lock = new pg.Client(databaseUrl);
        // A lock that is lost shows in what comes.
        lock.on('error', () => {});
        await lock.connect();
        await lock.query('begin');
        await lock.query('select from custom_instance where tenant = $1 and id = $2 for update', [tenant, id]);
        const unlock = setTimeout(() => void lock.end(), milliseconds);
        const response = await call(`/schema/${tenant}/custom-entities/HUGE/instances/${id}`, { method: 'DELETE' });
        const text = await response.text();
        clearTimeout(unlock);
        await lock.end();
        return told(response.status, text);
      },
    },
    {
      limit: 'Time in which a client takes no byte of its answer',
      value: maxClientSilence,
      below: maxClientSilence - 5_000,
      // The service looks every 10 s.
      late: 25_000,
      expected: ['the whole page', 'a page that is cut off'],
      attempt: (milliseconds) => readAfterSilence(baseUrl, token, milliseconds),
    },
    {
      limit: 'Time in which a client sends its request',
      value: maxRequestTime,
      below: maxRequestTime - 10_000,
      // Node looks every 30 s.
      late: 35_000,
      expected: ['401', '400 validation_violation'],
      attempt: (milliseconds) => sendSlowly(baseUrl, milliseconds),
    },
    {
      limit: 'Time in which a client sends the head of its request',
      value: maxHeadTime,
      below: maxHeadTime - 10_000,
      late: 35_000,
      expected: ['401', '400 validation_violation'],
      attempt: (milliseconds) => sendHeadSlowly(baseUrl, milliseconds),
    },
    {
      limit: 'Silence of a provider during a call',
      value: silence,
      below: silence - 5_000,
      late: 5_000,
      expected: ['200', '504 provider_timeout'],
      attempt: (milliseconds, side) =>
        chat(`silent${side}`, 'chat', (response) => void sleep(milliseconds).then(() => response.end(wholeAnswer))),
    },
    {
      limit: 'Whole time of a call of a provider',
      value: total,
      below: total - 10_000,
      late: 5_000,
      expected: ['the whole stream', 'an event: error, 200 provider_timeout'],
      attempt: (milliseconds, side) =>
        chat(`slow${side}`, 'chat-stream', (response) => void streamTokens(response, milliseconds / 10_000, 10_000)),
    },
  ];
}

/** Asks for a page, takes nothing of it for so long, then reads it to its end. */
async function readAfterSilence(baseUrl: string, token: string, milliseconds: number): Promise<string> {
  const socket = connectTo(baseUrl);
  const reading = socket[Symbol.asyncIterator]();
  socket.write(
    `GET /schema/${tenant}/custom-entities/HUGE/instances?pageSize=100&sort=-id HTTP/1.1\r\nHost: bench\r\n` +
      `Authorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  );
  await sleep(milliseconds);
  let length = 0;
  try {
    for await (const chunk of { [Symbol.asyncIterator]: () => reading }) length += chunk.length;
  } catch {
    // A connection that was cut.
  }
  return length > bytesOfPage * 0.9 ? 'the whole page' : 'a page that is cut off';
}

/** Sends the body of a request in two parts, so long apart. */
async function sendSlowly(baseUrl: string, milliseconds: number): Promise<string> {
  const socket = connectTo(baseUrl);
  socket.write(headOfWrongSecret + wrongSecret.slice(0, 10));
  const rest = setTimeout(() => socket.write(wrongSecret.slice(10)), milliseconds);
  return await answerOn(socket).finally(() => clearTimeout(rest));
}

/** Sends the head of a request in ten parts, so that the client is never silent for long, and then the body. */
async function sendHeadSlowly(baseUrl: string, milliseconds: number): Promise<string> {
  const socket = connectTo(baseUrl);
  const length = Math.ceil(headOfWrongSecret.length / 10);
  let sent = 0;
  const sendPart = () => {
    socket.write(headOfWrongSecret.slice(sent, sent + length));
    sent += length;
    if (sent >= headOfWrongSecret.length) socket.write(wrongSecret);
  };
  sendPart();
  const parts = setInterval(() => sent < headOfWrongSecret.length && sendPart(), milliseconds / 9);
  return await answerOn(socket).finally(() => clearInterval(parts));
}

function connectTo(baseUrl: string): Socket {
  const { hostname, port } = new URL(baseUrl);
  return connect({ host: hostname, port: Number(port) });
}

async function answerOn(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket) text += chunk;
  return told(Number(text.split(' ')[1]), text);
}

/** A status, and the type of an error where it is one that limits have. */
function told(status: number, text: string): string {
  const type = /validation_violation|service_unavailable|provider_timeout/.exec(text)?.[0];
  return type === undefined ? `${status}` : `${status} ${type}`;
}

async function lineOf({ limit, value, below, late, expected, attempt }: Trial, side: 0 | 1): Promise<string> {
  const takes = side === 0 ? below : value + late;
  const begun = performance.now();
  const came = await attempt(takes, side);
  const after = performance.now() - begun;
  const inTime = side === 0 || after >= value;
  const seconds = (milliseconds: number) => (milliseconds / 1_000).toFixed(0);
  const holds = came === expected[side] && inTime ? 'yes' : `no: ${expected[side]}`;
  return `| ${limit} | ${seconds(value)} | ${seconds(takes)} | ${came} | ${seconds(after)} | ${holds} |`;
}

import { Ajv2020 } from 'ajv/dist/2020.js';
import { openaiDocument } from '../../../src/desk/openai/document.ts';
import described from '../../support/oracle/openai-answers.json' with { type: 'json' };

type Name = keyof typeof described.$defs;

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema({ ...closed(described), $id: 'openai' });

/** An object with members that are not described is a mistake, too; `nullable` is not of this JSON Schema. */
function closed(schema: object): object {
  const entries = Object.entries(schema).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.map(closedOrValue) : closedOrValue(value),
  ]);
  const { nullable, ...inner } = Object.fromEntries(entries);
  const whole =
    'properties' in schema && !('additionalProperties' in schema) ? { ...inner, additionalProperties: false } : inner;
  return nullable === true ? { anyOf: [whole, { type: 'null' }] } : whole;
}

function closedOrValue(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? closed(value) : value;
}

/** Throws where a value is not as OpenAI describes it. */
export function checkAs(name: Name, value: unknown): void {
  if (ajv.validate(`openai#/$defs/${name}`, value)) return;
  const faults = (ajv.errors ?? []).slice(0, 5).map(({ instancePath, message }) => `${instancePath} ${message}`);
  throw new Error(`not as OpenAI describes ${name}: ${faults.join('; ')}\n${JSON.stringify(value).slice(0, 1_000)}`);
}

const ours = new Ajv2020({ strict: false, allErrors: true });
const document = JSON.parse(openaiDocument({ version: '0', address: '' })) as {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
};
ours.addSchema({ $id: 'ours', ...document });

/**
 * Our own description has to hold for each request that succeeded, and for each answer.
 */
function checkAsOurs(path: string, method: string, status: number, request: unknown, answer: unknown): void {
  const [, place = ''] = /\/v1(\/chat\/completions|\/responses|\/embeddings|\/models)/.exec(path) ?? [];
  const template = path.includes('/models/') ? '/models/{model}' : place;
  const operation = document.paths[template]?.[method.toLowerCase()];
  if (operation === undefined) return;
  if (operation.responses[status] === undefined) throw new Error(`${method} ${template}: ${status} is not described`);
  const pointer = `ours#/paths/${encodeURIComponent(template.replaceAll('/', '~1'))}/${method.toLowerCase()}`;
  const media = 'content/application~1json/schema';
  const parts: [string, unknown][] = [[`${pointer}/responses/${status}/${media}`, answer]];
  if (status === 200 && typeof request === 'object' && request !== null) {
    // A member that is null counts as left out.
    const members = Object.fromEntries(Object.entries(request).filter(([, value]) => value !== null));
    parts.push([`${pointer}/requestBody/${media}`, members]);
  }
  for (const [schema, value] of parts) {
    if (value === undefined || ours.validate(schema, value)) continue;
    throw new Error(`not as our document says: ${ours.errorsText()}\n${JSON.stringify(value).slice(0, 1_000)}`);
  }
}

const wholes: readonly [RegExp, Name][] = [
  [/\/models$/, 'ListModelsResponse'],
  [/\/models\//, 'Model'],
  [/\/chat\/completions$/, 'CreateChatCompletionResponse'],
];

/** The one member that OpenAI does not describe: clients read reasoning from it. */
function withoutReasoning(name: string, value: unknown): unknown {
  return name === 'reasoning_content' && typeof value === 'string' ? undefined : value;
}

function checkWhole(path: string, isSuccess: boolean, text: string): void {
  const name = isSuccess ? wholes.find(([pattern]) => pattern.test(path))?.[1] : 'ErrorResponse';
  if (name !== undefined) checkAs(name, JSON.parse(text, withoutReasoning));
}

function checkEvent(path: string, event: { error?: unknown; type?: unknown }): void {
  if (event.error !== undefined) checkAs('ErrorResponse', event);
  else if (path.endsWith('/chat/completions')) checkAs('CreateChatCompletionStreamResponse', event);
  else if (event.type === 'error') checkAs('ResponseErrorEvent', event);
}

function eventsOf(text: string): { error?: unknown; type?: unknown }[] {
  return [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => JSON.parse(data, withoutReasoning));
}

/** The model that a request names; `anthropic/` where it names none. */
function modelOf(request: unknown): string {
  const model = typeof request === 'object' && request !== null ? Reflect.get(request, 'model') : undefined;
  return typeof model === 'string' ? model : 'anthropic/';
}

/**
 * A `fetch` for OpenAI's client that checks bodies, and each event of a stream. `faults` gets what is not as described.
 */
export function describedFetch(faults: unknown[]): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const path = new URL(input instanceof Request ? input.url : input).pathname;
    const streams = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    const decoder = new TextDecoder();
    let text = '';
    const request: unknown = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined;
    // What is passed through is as its server wrote it.
    const isPassed = response.ok && /^(?!anthropic\/|google\/)/.test(modelOf(request));
    const look = () => {
      try {
        if (isPassed) checkAsOurs(path, init?.method ?? 'GET', response.status, request, undefined);
        else check();
      } catch (error) {
        faults.push(error);
      }
      text = '';
    };
    const check = () => {
      if (!streams) checkWhole(path, response.ok, text);
      checkAsOurs(path, init?.method ?? 'GET', response.status, request, streams ? undefined : JSON.parse(text));
      if (streams) for (const event of eventsOf(text)) checkEvent(path, event);
    };
    const watched = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        text += decoder.decode(chunk, { stream: true });
        if (streams && text.endsWith('\n\n')) look();
        controller.enqueue(chunk);
      },
      flush: look,
    });
    return new Response(response.body?.pipeThrough(watched), response);
  };
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { ChatOpenAI } from '@langchain/openai';
import OpenAI from 'openai';
import { chatCalls, oddChat, oddResponse, oddStream, responseCalls } from './calls.ts';
import { chatReplies, failures, type Reply, responseReplies } from './replies.ts';

export type Operation = 'chat/completions' | 'responses';

/** Where a client calls. */
export interface Place {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly model: string;
}

/** One call of one client. */
export interface Case {
  readonly client: string;
  readonly name: string;
  readonly operation: Operation;
  readonly replies: readonly Reply[];
  /** Returns what the client sees of the answer. */
  run(place: Place): Promise<unknown>;
}

/** The clients that `npm install` in clients/ brings. */
export const clientsFolder = join(import.meta.dirname, 'clients');

const operations = ['chat/completions', 'responses'] as const;
const callsOf = { 'chat/completions': chatCalls, responses: responseCalls };

async function all(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const parts: unknown[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

function openaiNode(): Case[] {
  return operations.flatMap((operation) =>
    Object.entries(callsOf[operation]).map(([name, { members, reply }]) => ({
      client: 'openai for Node',
      name,
      operation,
      replies: [reply],
      async run({ model, ...place }) {
        const client = new OpenAI({ ...place, maxRetries: 0 });
        const request = { model, ...members } as never;
        const made: Promise<unknown> =
          operation === 'responses' ? client.responses.create(request) : client.chat.completions.create(request);
        const answer = await made;
        return members.stream === true ? await all(answer as AsyncIterable<unknown>) : answer;
      },
    })),
  );
}

function python(): Case[] {
  const bodies: [string, Operation, string, Reply][] = operations.flatMap((operation) =>
    Object.entries(callsOf[operation]).map(([name, { members, reply }]): [string, Operation, string, Reply] => [
      name,
      operation,
      JSON.stringify({ model: 'MODEL', ...members }),
      reply,
    ]),
  );
  bodies.push(['odd bytes', 'chat/completions', oddChat, chatReplies.plain]);
  bodies.push(['odd bytes, streamed', 'chat/completions', oddStream, chatReplies.stream]);
  bodies.push(['odd bytes', 'responses', oddResponse, responseReplies.reasoning]);
  return bodies.map(([name, operation, body, reply]) => ({
    client: 'Python, raw HTTP',
    name,
    operation,
    replies: [reply],
    async run({ baseURL, apiKey, model }) {
      const program = join(import.meta.dirname, 'raw.py');
      const child = spawn('python3', [program, `${baseURL}/${operation}`, apiKey], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      child.stdin.end(body.replace('MODEL', model));
      return JSON.parse(await text(child.stdout));
    },
  }));
}

const tool = {
  name: 'weather',
  description: 'Tells it.',
  schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
};

function langChain(): Case[] {
  return operations.flatMap((operation) => {
    const isResponses = operation === 'responses';
    const replies = isResponses ? responseReplies : chatReplies;
    const made = (place: Place, more: object = {}) =>
      new ChatOpenAI({
        model: place.model,
        apiKey: place.apiKey,
        configuration: { baseURL: place.baseURL },
        maxRetries: 0,
        useResponsesApi: isResponses,
        ...more,
      });
    const runs: [string, Reply, Case['run']][] = [
      ['plain', replies.plain, async (place) => await made(place).invoke('Hello')],
      ['streamed', replies.stream, async (place) => await all(await made(place).stream('Hello'))],
      [
        'streamed, usage unasked',
        replies.stream,
        async (place) => await all(await made(place, { streamUsage: false }).stream('Hello')),
      ],
      [
        'tools, strict',
        replies.tools,
        async (place) =>
          await made(place)
            .bindTools([{ ...tool, type: 'function', function: { ...tool, parameters: tool.schema } } as never], {
              strict: true,
            })
            .invoke('The weather?'),
      ],
      [
        'json_schema',
        replies.json,
        async (place) =>
          await made(place)
            .withStructuredOutput({ title: 'town', ...tool.schema }, { method: 'jsonSchema', strict: true })
            .invoke('Which?'),
      ],
      ['reasoning', replies.reasoning, async (place) => await made(place).invoke('Hello')],
      ['error 429', failures[429], async (place) => await made(place).invoke('Hello')],
    ];
    return runs.map(([name, reply, run]) => ({ client: 'LangChain', name, operation, replies: [reply], run }));
  });
}

const prompt: LanguageModelV4CallOptions['prompt'] = [
  { role: 'system', content: 'You answer in one word.' },
  { role: 'user', content: [{ type: 'text', text: 'Which is it?' }] },
];
const aiTool = { type: 'function', name: tool.name, description: tool.description, strict: true } as const;

function aiSdk(client: string, operation: Operation, modelAt: (place: Place) => LanguageModelV4): Case[] {
  const replies = operation === 'responses' ? responseReplies : chatReplies;
  const generate = (options: Partial<LanguageModelV4CallOptions> = {}) => {
    return async (place: Place) => await modelAt(place).doGenerate({ prompt, ...options });
  };
  const stream = (options: Partial<LanguageModelV4CallOptions> = {}) => {
    return async (place: Place) => await all((await modelAt(place).doStream({ prompt, ...options })).stream);
  };
  const tools = [{ ...aiTool, inputSchema: tool.schema as never }];
  const image = {
    type: 'file',
    mediaType: 'image/png',
    data: { type: 'data', data: new Uint8Array([1, 2, 3]) },
  } as const;
  const seen: LanguageModelV4CallOptions['prompt'] = [{ role: 'user', content: [image] }];
  const runs: [string, Reply, Case['run']][] = [
    ['plain', replies.plain, generate({ maxOutputTokens: 99 })],
    ['streamed', replies.stream, stream()],
    ['tools, strict', replies.tools, generate({ tools, toolChoice: { type: 'auto' } })],
    ['tools, streamed', replies.toolStream, stream({ tools })],
    ['image', replies.plain, generate({ prompt: seen })],
    [
      'json_schema',
      replies.json,
      generate({ responseFormat: { type: 'json', name: 'town', schema: tool.schema as never } }),
    ],
    ['reasoning', replies.reasoning, generate({ reasoning: 'low' })],
    ['error 400', failures[400], generate()],
    ['error 429', failures[429], generate()],
  ];
  return runs.map(([name, reply, run]) => ({ client, name, operation, replies: [reply], run }));
}

/** What the benchmark uses of `@openai/agents`, which is installed apart. */
interface Agents {
  Agent: new (options: object) => object;
  Runner: new (
    options: object,
  ) => {
    run(
      agent: object,
      input: string,
      options: object,
    ): Promise<{ finalOutput: unknown; completed: Promise<void> } & AsyncIterable<unknown>>;
  };
  OpenAIProvider: new (options: object) => object;
  tool(options: object): object;
  setTracingDisabled(disabled: boolean): void;
}

async function agents(): Promise<Case[]> {
  const path = join(clientsFolder, 'node_modules/@openai/agents/dist/index.mjs');
  const { Agent, Runner, OpenAIProvider, tool: toolOf, setTracingDisabled } = (await import(path)) as Agents;
  setTracingDisabled(true);
  return operations.flatMap((operation) => {
    const replies = operation === 'responses' ? responseReplies : chatReplies;
    const run = (stream: boolean) => async (place: Place) => {
      const openAIClient = new OpenAI({ baseURL: place.baseURL, apiKey: place.apiKey, maxRetries: 0 });
      const modelProvider = new OpenAIProvider({ openAIClient, useResponses: operation === 'responses' });
      const weather = toolOf({
        name: tool.name,
        description: tool.description,
        parameters: tool.schema,
        strict: true,
        execute: async (input: unknown) => `21.50 in ${JSON.stringify(input)}`,
      });
      const agent = new Agent({ name: 'Assistant', instructions: 'Be short.', tools: [weather], model: place.model });
      const result = await new Runner({ modelProvider }).run(agent, 'The weather?', { stream });
      const events = stream ? (await all(result)).length : 0;
      if (stream) await result.completed;
      return { events, output: result.finalOutput };
    };
    return [
      {
        client: '@openai/agents',
        name: 'two turns with tools',
        operation,
        replies: [replies.tools, replies.plain],
        run: run(false),
      },
      {
        client: '@openai/agents',
        name: 'two turns with tools, streamed',
        operation,
        replies: [replies.toolStream, replies.stream],
        run: run(true),
      },
    ];
  });
}

function codex(): Case[] {
  const item = (members: object) => ({ output_index: 0, item: members });
  const turn = (members: object): Reply => {
    const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };
    const events = [
      { type: 'response.created', response: { id: 'resp_1' } },
      { type: 'response.output_item.done', ...item(members) },
      { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output: [members], usage } },
    ];
    return { events: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`) };
  };
  const command = JSON.stringify({ cmd: 'echo after > file.txt' });
  const content = [{ type: 'output_text', text: 'Changed.', annotations: [] }];
  return [
    {
      client: 'Codex',
      name: 'two turns that change a file',
      operation: 'responses',
      replies: [
        turn({ type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'exec_command', arguments: command }),
        turn({ type: 'message', id: 'msg_1', role: 'assistant', content }),
      ],
      async run({ baseURL, apiKey, model }) {
        const folder = await mkdtemp(join(tmpdir(), 'fidelity-'));
        await writeFile(join(folder, 'file.txt'), 'before\n');
        const provider = `name = "P"\nbase_url = "${baseURL}"\nenv_key = "KEY"\nwire_api = "responses"\n`;
        await writeFile(
          join(folder, 'config.toml'),
          `model = "${model}"\nmodel_provider = "p"\n[model_providers.p]\n${provider}`,
        );
        const options = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
        const child = spawn(join(clientsFolder, 'node_modules/.bin/codex'), [...options, 'Change the file.'], {
          cwd: folder,
          env: { PATH: process.env.PATH, CODEX_HOME: folder, HOME: folder, KEY: apiKey },
          stdio: ['ignore', 'pipe', 'ignore'],
          timeout: 100_000,
        });
        const ended = once(child, 'close');
        const output = await text(child.stdout);
        await ended;
        const file = await readFile(join(folder, 'file.txt'), 'utf8');
        await rm(folder, { recursive: true });
        return { output: output.trim(), file };
      },
    },
  ];
}

/** Every call of every client that the guide names, and of those that speak its format by themselves. */
export async function allCases(): Promise<Case[]> {
  const settings = ({ baseURL, apiKey }: Place) => ({ baseURL, apiKey });
  return [
    ...openaiNode(),
    ...python(),
    ...langChain(),
    ...aiSdk('@ai-sdk/openai', 'chat/completions', (place) => createOpenAI(settings(place)).chat(place.model)),
    ...aiSdk('@ai-sdk/openai', 'responses', (place) => createOpenAI(settings(place)).responses(place.model)),
    ...aiSdk('@ai-sdk/openai-compatible', 'chat/completions', (place) =>
      createOpenAICompatible({ name: 'annals', ...settings(place) }).languageModel(place.model),
    ),
    ...(await agents()),
    ...codex(),
  ];
}

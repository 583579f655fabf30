import { effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { quoted } from '../../../src/query/written.ts';
import { annals } from '../api/annals.ts';
import { allows, session } from '../api/session.ts';
import { textFor } from '../components/numbers.ts';
import { Name } from '../components/text.tsx';

interface AgentNameProps {
  readonly id: string;
  /** Whether the id stands beside the name. Left out: it is the title. */
  readonly withId?: boolean;
}

/** What an agent is called. Its id stands for it until the name is there, and where it has none. */
export function AgentName({ id, withId = false }: AgentNameProps) {
  const name = agentName(id);
  useEffect(() => wantAgentName(id), [id, name]);
  if (name === undefined) return <Name text={id} />;
  if (withId) {
    return (
      <>
        <Name text={name} /> <Name class="agent-id muted mono" text={id} />
      </>
    );
  }
  return (
    <span title={id}>
      <Name text={name} />
    </span>
  );
}

/** Agents that one call asks for. */
const maxAtOnce = 200;
/** Characters of the ids of one call: a query may have 4,096 in all. */
const maxIdsLength = 4_000;

/** The names of agents by id; undefined while they are asked for, and where an agent is gone or has no name. */
const names = signal<ReadonlyMap<string, string | undefined>>(new Map());
const wanted = new Set<string>();

// Another tenant has other agents.
let tenant: string | undefined;
effect(() => {
  const next = session.value?.tenant;
  if (next !== tenant) forgetAgentNames();
  tenant = next;
});

/** What an agent is called; undefined where nobody knows. All ids of a page are asked for together. */
function agentName(id: string): string | undefined {
  return names.value.get(id);
}

/** Asks for the name of an agent, unless it was asked for already or the session may not read agents. */
function wantAgentName(id: string): void {
  if (id === '' || names.peek().has(id) || wanted.has(id) || !allows('ai.agent_read', 'ai.agent_manage')) return;
  wanted.add(id);
  if (wanted.size === 1) queueMicrotask(() => void readNames());
}

/** The next look at a name asks again. To be called after an agent was written. */
export function forgetAgentNames(): void {
  names.value = new Map();
}

async function readNames(): Promise<void> {
  const ids = [...wanted];
  wanted.clear();
  names.value = new Map([...names.peek(), ...ids.map((id) => [id, undefined] as const)]);
  for (const some of portions(ids.map(quoted))) {
    try {
      const parameters = { q: `_id:(${some.join(',')})`, fields: 'id,name', pageSize: maxAtOnce };
      const { items } = await annals().agents.list(parameters);
      names.value = new Map([...names.peek(), ...items.map(({ id = '', name }) => [id, textFor(name)] as const)]);
    } catch {
      // The page then shows the id. Nothing else depends on a name.
    }
  }
}

/** The ids in as few portions as one call each can ask for. */
function portions(ids: readonly string[]): string[][] {
  const found: string[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const id of ids) {
    if (length + id.length >= maxIdsLength || found.at(-1)?.length === maxAtOnce) {
      found.push([]);
      length = 0;
    }
    found.at(-1)?.push(id);
    length += id.length + 1;
  }
  return found;
}

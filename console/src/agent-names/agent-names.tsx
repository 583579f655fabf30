import { effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { quoted } from '../../../src/query/written.ts';
import { annals } from '../api/annals.ts';
import { onceReached } from '../api/requests.ts';
import { allows, session } from '../api/session.ts';
import { textFor } from '../components/numbers.ts';
import { Name } from '../components/text.tsx';

interface AgentNameProps {
  readonly id: string;
  /** Whether the id follows the name; otherwise it is the tooltip. */
  readonly withId?: boolean;
}

/** The name of an agent; its id until the name is read, and if it has none. */
export function AgentName({ id, withId = false }: AgentNameProps) {
  const name = agentName(id);
  useEffect(() => requestAgentName(id), [id, name]);
  if (name === undefined) return <Name text={id} />;
  if (withId) {
    return (
      <>
        <Name text={name} /> <Name class="muted mono" text={id} />
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

/** The names of agents by id; undefined while they are read, and if an agent is deleted or has no name. */
const names = signal<ReadonlyMap<string, string | undefined>>(new Map());
const requested = new Set<string>();

// Another tenant has other agents.
let tenant: string | undefined;
effect(() => {
  const next = session.value?.tenant;
  if (next !== tenant) forgetAgentNames();
  tenant = next;
});

/** The name of an agent; undefined if unknown. All ids of a page are read together. */
function agentName(id: string): string | undefined {
  return names.value.get(id);
}

/** Requests the name of an agent, unless it is requested already or the session may not read agents. */
function requestAgentName(id: string): void {
  if (id === '' || names.peek().has(id) || requested.has(id) || !allows('ai.agent_read', 'ai.agent_manage')) return;
  requested.add(id);
  if (requested.size === 1) queueMicrotask(() => void readNames());
}

/** The next look at a name asks again. To be called after an agent was written. */
export function forgetAgentNames(): void {
  names.value = new Map();
}

async function readNames(): Promise<void> {
  const ids = [...requested];
  requested.clear();
  names.value = new Map([...names.peek(), ...ids.map((id) => [id, undefined] as const)]);
  for (const some of portions(ids.map(quoted))) {
    try {
      const parameters = { q: `_id:(${some.join(',')})`, fields: 'id,name', pageSize: maxAtOnce };
      const { items } = await onceReached(() => annals().agents.list(parameters));
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

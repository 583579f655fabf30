import { useEffect } from 'preact/hooks';
import { Name } from '../components/name.tsx';
import { agentName, wantAgentName } from './agent-names.ts';

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
        <Name text={name} />{' '}
        <span class="agent-id muted mono">
          <Name text={id} />
        </span>
      </>
    );
  }
  return (
    <span title={id}>
      <Name text={name} />
    </span>
  );
}

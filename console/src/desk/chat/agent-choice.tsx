import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { FormField } from '../../components/forms.tsx';
import { FailureBox } from '../../components/states.tsx';
import { agentTitle } from '../agents/agent-draft.ts';

interface AgentChoiceProps {
  readonly agentId: string;
  /** Whether the conversation has begun. Another agent begins a new one. */
  readonly isFixed: boolean;
  readonly onChoose: (agentId: string) => void;
}

/** The agent that answers. One who may not list agents writes its id. */
export function AgentChoice(props: AgentChoiceProps) {
  return allows('ai.agent_read', 'ai.agent_manage') ? <ChosenOfList {...props} /> : <WrittenId {...props} />;
}

function ChosenOfList({ agentId, isFixed, onChoose }: AgentChoiceProps) {
  const { value, error, reload } = useRequest('agents that answer', (signal) =>
    annals().agents.list({ q: 'enabled:true', sort: 'name.en:ASC', pageSize: 500 }, { signal }),
  );
  const agents = value?.items ?? [];
  const isListed = agents.some(({ id }) => id === agentId);
  return (
    <>
      <FailureBox error={error} onRetry={reload} />
      <div class="agent-choice">
        <FormField label="Agent" hint={isFixed ? 'Another agent begins a new session.' : undefined}>
          {(control) => (
            <select {...control} value={agentId} onChange={(event) => onChoose(event.currentTarget.value)}>
              {agentId === '' ? <option value="">Choose an agent</option> : undefined}
              {agentId === '' || isListed ? undefined : <option value={agentId}>{agentId}</option>}
              {agents.map((agent) => (
                <option key={agent.id} value={agent.id}>
                  {agentTitle(agent)}
                </option>
              ))}
            </select>
          )}
        </FormField>
      </div>
    </>
  );
}

function WrittenId({ agentId, onChoose }: AgentChoiceProps) {
  const [id, setId] = useState(agentId);
  return (
    <form
      class="agent-choice with-button"
      onSubmit={(event) => {
        event.preventDefault();
        onChoose(id.trim());
      }}
    >
      <FormField label="Agent" hint="Write its id. Your client may chat, but has no scope to list agents.">
        {(control) => (
          <input {...control} class="mono" value={id} onInput={(event) => setId(event.currentTarget.value)} />
        )}
      </FormField>
      <Button type="submit" disabled={id.trim() === '' || id === agentId}>
        Choose
      </Button>
    </form>
  );
}

import type { Agent } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { tell, tellFailure } from '../../components/toasts.tsx';
import { agentTitle } from './agent-draft.ts';

/** Enables an agent that is disabled, and the other way round. */
export function EnableButton({ agent, onChanged }: { readonly agent: Agent; readonly onChanged: () => void }) {
  const [isBusy, setBusy] = useState(false);
  if (!allows('ai.agent_manage')) return null;
  const turn = async () => {
    setBusy(true);
    try {
      await annals().agents.patch(agent.id, [{ op: 'REPLACE', path: '/enabled', value: !agent.enabled }]);
      tell(`${agentTitle(agent)} is ${agent.enabled ? 'disabled' : 'enabled'}.`);
      onChanged();
    } catch (error) {
      tellFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button disabled={isBusy} onClick={() => void turn()}>
      {agent.enabled ? 'Disable' : agent.disabledReason === undefined ? 'Enable' : 'Enable again'}
    </Button>
  );
}

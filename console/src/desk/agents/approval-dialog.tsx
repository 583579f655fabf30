import type { Agent } from '@annals/client';
import { type JsonValue, parseJson, stringifyJson } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { useInSlices, useRequest } from '../../api/requests.ts';
import { differences } from '../../compare/compare-documents.ts';
import { PathChanges } from '../../compare/path-changes.tsx';
import { CheckField } from '../../components/forms.tsx';
import { JsonTree } from '../../components/json-tree.tsx';
import { bytesText } from '../../components/numbers.ts';
import { Dialog } from '../../components/overlays.tsx';
import { Answer, Badge } from '../../components/states.tsx';
import { LongText, Name } from '../../components/text.tsx';
import { tell } from '../../components/toasts.ts';
import {
  approving,
  bytesBeyondRoom,
  type OfferedTool,
  readsHistory,
  serversOf,
  type ToolServer,
  ticked,
  withServers,
} from './tool-servers.ts';

interface ApprovalDialogProps {
  readonly agent: Agent;
  readonly server: ToolServer;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

/** Shows what a server offers, beside what was approved, and approves what is ticked. */
export function ApprovalDialog({ agent: { id }, server: { name }, onClose, onSaved }: ApprovalDialogProps) {
  const read = useRequest(`tools ${id} ${name}`, async (signal) => {
    const offer = await annals().agents.readTools(id, name, { signal });
    // What was read may have changed the agent: it says which tools are others now.
    return { offer, agent: await annals().agents.get(id, { signal }) };
  });
  const [chosen, setChosen] = useState<ReadonlySet<string>>();
  const [allows, setAllows] = useState(false);
  const { value } = read;
  const ticks = chosen ?? (value === undefined ? new Set<string>() : ticked(value.offer));
  const asksForHistory =
    value !== undefined && ticks.size > 0 && readsHistory(value.agent) && value.agent.allowHistoryWithTools !== true;
  const beyond = value === undefined ? 0 : bytesBeyondRoom(value.offer, ticks);
  const close = () => {
    if (value !== undefined) onSaved();
    onClose();
  };
  const run = async () => {
    if (value === undefined) return;
    const servers = approving(serversOf(value.agent), value.offer, ticks);
    const more = asksForHistory && allows ? { allowHistoryWithTools: true } : {};
    await annals().agents.put(id, withServers(value.agent, servers, more));
    tell(`The tools of ${name} are saved.`);
  };
  return (
    <Dialog
      title={`Tools of ${name}`}
      onClose={close}
      actions={[{ label: 'Approve', isReady: value !== undefined && (!asksForHistory || allows), run }]}
    >
      <p class="muted">
        The model is told the name, the description and the input of each tool that you tick. If the server changes one
        of them, the tool is left out until you approve it again.
      </p>
      <Answer of={read}>
        {({ offer }) => (offer.tools.length === 0 ? <p>The server offers no tools.</p> : undefined)}
      </Answer>
      <div class="form-grid">
        {value?.offer.tools.map((tool) => (
          <ToolChoice
            key={tool.name}
            tool={tool}
            isTicked={ticks.has(tool.name)}
            onTick={(isTicked) => {
              const others = [...ticks].filter((other) => other !== tool.name);
              setChosen(new Set(isTicked ? [...others, tool.name] : others));
            }}
          />
        ))}
      </div>
      {beyond === 0 ? undefined : (
        <p class="form-error" role="status">
          The model cannot use these tools: they are {bytesText(beyond)} too long for its context. Tick fewer, or set
          Context of the agent to what the model takes.
        </p>
      )}
      {asksForHistory ? (
        <CheckField checked={allows} onCheck={setAllows}>
          This agent also searches the change history. What it finds there may go to this server.
        </CheckField>
      ) : undefined}
    </Dialog>
  );
}

type ToolDefinition = NonNullable<OfferedTool['offered']>;

const states: Readonly<Record<OfferedTool['state'], { tone: 'plain' | 'good' | 'warn'; word: string }>> = {
  new: { tone: 'plain', word: 'not approved' },
  approved: { tone: 'good', word: 'approved' },
  changed: { tone: 'warn', word: 'has changed' },
  missing: { tone: 'warn', word: 'missing' },
};

function ToolChoice({
  tool: { name, state, offered, approved, fault },
  isTicked,
  onTick,
}: {
  readonly tool: OfferedTool;
  readonly isTicked: boolean;
  readonly onTick: (isTicked: boolean) => void;
}) {
  const { tone, word } = states[state];
  return (
    <section class="offered-tool">
      <CheckField checked={isTicked} disabled={fault !== undefined} onCheck={onTick}>
        <span class="mono">
          <Name text={name} />
        </span>{' '}
        <Badge tone={tone}>{word}</Badge>
      </CheckField>
      {fault === undefined ? undefined : <p class="form-error">No agent can have it: it {fault}.</p>}
      {state === 'changed' && approved?.definition !== undefined && offered !== undefined ? (
        <Differences before={approved.definition} after={offered} />
      ) : offered === undefined ? undefined : (
        <>
          {offered.description === undefined ? undefined : <LongText text={offered.description} />}
          <div class="offered-input">
            <span class="muted">Input</span> <JsonTree value={exact(offered.inputSchema)} open={0} />
          </div>
        </>
      )}
    </section>
  );
}

/** Where the definitions differ, path by path. */
function Differences({ before, after }: { readonly before: ToolDefinition; readonly after: ToolDefinition }) {
  const found = useInSlices(() => differences(exact(before), exact(after)), [before, after]).value;
  return found === undefined ? null : <PathChanges paths={found} />;
}

function exact(value: unknown): JsonValue {
  return parseJson(stringifyJson(value));
}

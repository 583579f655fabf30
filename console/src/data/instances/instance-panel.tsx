import type { JsonObject } from '@annals/client/json';
import { stringifyJson } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows, readsHistory } from '../../api/session.ts';
import { Button, CopyButton } from '../../components/buttons.tsx';
import { JsonTree } from '../../components/json-tree.tsx';
import { ConfirmButton, Dialog, SidePanel } from '../../components/overlays.tsx';
import { Answer } from '../../components/states.tsx';
import { Name } from '../../components/text.tsx';
import { tell } from '../../components/toasts.ts';
import { HistoryLink } from '../../lists/list-page.tsx';
import { Link, place, setParameters } from '../../router/router.tsx';
import { InstanceEditor } from './instance-editor.tsx';

interface InstancePanelProps {
  readonly type: string;
  /** Undefined for a new one. */
  readonly id: string | undefined;
  readonly schema: JsonObject | undefined;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** One instance: its document as it was written, its history, and its editor. */
export function InstancePanel({ type, id, schema, onClose, onChanged }: InstancePanelProps) {
  const request = useRequest(id === undefined ? undefined : `instance ${type} ${id}`, (signal) =>
    annals()
      .exact.instances(type)
      .get(id ?? '', { signal }),
  );
  const { value: instance, reload } = request;
  const [isDirty, setDirty] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const isEditing = place.value.parameters.has('edit') && allows('schema.custominstance_manage');
  const saved = (savedId: string) => {
    setDirty(false);
    tell(`${savedId} is saved.`);
    setParameters({ item: savedId, edit: undefined }, { replace: true });
    onChanged();
    reload();
  };
  const editor = (read: JsonObject | undefined) => (
    <InstanceEditor
      type={type}
      id={id}
      instance={read}
      schema={schema}
      onDirty={setDirty}
      onSaved={saved}
      onReload={reload}
      onCancel={() => {
        setDirty(false);
        if (id === undefined) onClose();
        else setParameters({ edit: undefined });
      }}
    />
  );
  return (
    <SidePanel
      title={id === undefined ? 'New instance' : <Name text={id} />}
      onClose={() => (isDirty ? setLeaving(true) : onClose())}
      actions={
        id === undefined || instance === undefined || isEditing ? undefined : (
          <>
            <CopyButton text={() => stringifyJson(instance, 2)} what="the JSON" />
            {allows('schema.custominstance_manage') ? (
              <>
                <ConfirmButton
                  kind="quiet"
                  icon="remove"
                  aria-label="Delete"
                  title="Delete"
                  ask={{
                    title: 'Delete the instance?',
                    run: async () => {
                      await annals().instances(type).delete(id);
                      tell(`${id} is deleted.`);
                      onChanged();
                      onClose();
                    },
                    body: (
                      <p>
                        <Name text={id} /> is gone; its history stays.
                      </p>
                    ),
                  }}
                />
                <Button icon="edit" onClick={() => setParameters({ edit: '1' })}>
                  Edit
                </Button>
              </>
            ) : undefined}
          </>
        )
      }
    >
      {id === undefined ? (
        isEditing ? (
          editor(undefined)
        ) : undefined
      ) : (
        <Answer of={request}>
          {(read) =>
            isEditing ? (
              editor(read)
            ) : (
              <div class="stack">
                <p class="page-actions">
                  <HistoryLink entity={type} entityId={id} />
                  {readsHistory() ? (
                    <Link to={{ path: 'document', parameters: { entity: type, id } }}>As it was</Link>
                  ) : undefined}
                </p>
                <JsonTree value={read} />
              </div>
            )
          }
        </Answer>
      )}
      {isLeaving ? (
        <Dialog
          title="Leave without saving?"
          onClose={() => setLeaving(false)}
          actions={[{ label: 'Leave', kind: 'danger', run: onClose }]}
        >
          <p>What you have written is lost.</p>
        </Dialog>
      ) : undefined}
    </SidePanel>
  );
}

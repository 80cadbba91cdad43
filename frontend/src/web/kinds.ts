/* The kinds of blocks that a context is made of, in the order in which they are stacked. */

export const kindNames = [
  'tools',
  'system',
  'memory',
  'file',
  'summary',
  'user',
  'assistant',
  'thinking',
  'result',
  'other',
] as const;
export type Kind = (typeof kindNames)[number];

export const kindTitles: Record<Kind, [code: string, title: string]> = {
  tools: ['TD', 'Tool definitions'],
  system: ['SY', 'System'],
  memory: ['ME', 'Memory'],
  file: ['FI', 'Files'],
  summary: ['SU', 'Summary'],
  user: ['US', 'User'],
  assistant: ['AS', 'Assistant'],
  thinking: ['TH', 'Thinking'],
  result: ['TR', 'Tool results'],
  other: ['OT', 'Other'],
};

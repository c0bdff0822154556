"""English words that carry no meaning of their own; two sentences that differ in them alone say the same.

Negations are not among them.
"""

# fmt: off
_FUNCTION_WORDS = frozenset(
    (
        "a", "about", "above", "across", "after", "all", "along", "also", "although", "am", "among", "an", "and",
        "any", "anyone", "anything", "are", "around", "as", "at", "be", "because", "been", "before", "being",
        "below", "between", "both", "but", "by", "can", "cannot", "could", "did", "do", "does", "doing", "done",
        "down", "during", "each", "either", "else", "every", "everything", "few", "for", "from", "further", "had",
        "has", "have", "having", "he", "hence", "her", "here", "hers", "him", "his", "how", "however", "i", "if",
        "in", "indeed", "into", "is", "it", "it's", "its", "itself", "just", "least", "less", "like", "many", "may",
        "me", "might", "mine", "more", "most", "much", "must", "my", "myself", "near", "nearly", "of", "off", "on",
        "once", "one", "only", "onto", "or", "other", "others", "ought", "our", "ours", "out", "over", "own", "per",
        "perhaps", "quite", "rather", "same", "several", "shall", "she", "should", "since", "so", "some",
        "something", "such", "than", "that", "that's", "the", "their", "theirs", "them", "themselves", "then",
        "there", "there's", "therefore", "these", "they", "this", "those", "though", "through", "thus", "till",
        "to", "too", "toward", "towards", "under", "unless", "until", "up", "upon", "us", "very", "via", "was",
        "we", "were", "what", "whatever", "when", "whenever", "where", "wherever", "whether", "which", "while",
        "who", "whom", "whose", "why", "will", "with", "within", "would", "yet", "you", "your", "yours", "yourself",
    )
)
_FILLER = frozenset(
    (
        "actually", "again", "ah", "ahead", "alright", "anyway", "basically", "carefully", "certainly", "clearly",
        "currently", "finally", "first", "going", "gonna", "good", "great", "hm", "hmm", "i'd", "i'll", "i'm",
        "i've", "let", "let's", "lets", "maybe", "moment", "need", "needs", "next", "now", "obviously",
        "ok", "okay", "please", "possibly", "probably", "quickly", "really", "right", "simply", "still", "sure",
        "think", "try", "trying", "wait", "want", "wants", "well", "yes",
    )
)
# fmt: on
EMPTY_WORDS = _FUNCTION_WORDS | _FILLER
"""Casefolded: articles, pronouns, prepositions, auxiliaries, and what agents put before saying something."""

"""DictionaryQA: which definition of a dictionary fits a word in its usage or quotation?"""
